import {
  compareActionIds,
  type ActionsAnswer,
  type ActionsCall,
  type NewAction,
  type StoredAction,
} from '../contract/action-verbs.js';
import { RULES } from '../job/rules.js';

/** The record of what people did, the oldest first. */
export class ActionBook {
  private readonly actions: StoredAction[] = [];

  record(action: NewAction, now: number): void {
    const last = this.actions.at(-1);
    // The time of ids never goes back, as in a stream of Redis.
    const at = Math.max(Math.floor(now), last?.at ?? 0);
    const sequence = last?.at === at ? Number(last.id.split('-')[1]) + 1 : 0;
    this.actions.push({ ...action, id: `${at}-${sequence}`, at });
    if (this.actions.length > RULES.actionsMax) this.actions.shift();
  }

  list({ before, limit, queue, actor }: ActionsCall): ActionsAnswer {
    const found = this.actions
      .toReversed()
      .filter(
        (one) =>
          (before === null || compareActionIds(one.id, before) < 0) &&
          (queue === undefined || one.queue === queue) &&
          (actor === undefined || one.actor === actor),
      );
    const actions = found.slice(0, limit);
    return { actions, next: found.length > limit ? actions.at(-1)!.id : null };
  }
}
