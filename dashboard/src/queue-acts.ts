import { post } from './api.js';
import { ask, attempt } from './dialogs.js';
import { queuePath } from './state.js';

/** Pauses a queue after a confirmation, or resumes it. */
export async function pauseOrResume(queue: string, isPaused: boolean): Promise<void> {
  if (!isPaused) {
    const sure = await ask({
      title: `Pause ${queue}?`,
      text: 'No process claims jobs from it until it is resumed. Running jobs go on, and jobs can still be added.',
      button: 'Pause it',
    });
    if (sure === null) return;
  }
  const verb = isPaused ? 'resume' : 'pause';
  await attempt(`${queue} is ${isPaused ? 'resumed' : 'paused'}.`, () => post(`${queuePath(queue)}/${verb}`));
}
