import { UsageError } from './usage-error.js';

export const COMPLETION_HELP = `Usage: godwit completion <bash|zsh|fish>

  bash: source <(godwit completion bash)
  zsh:  source <(godwit completion zsh)
  fish: godwit completion fish | source
`;

/** A shell script that completes the names of commands, and after them the names of queues. */
export function completionScript(shell: string | undefined, commands: readonly string[]): string {
  const names = commands.join(' ');
  switch (shell) {
    case 'bash':
      return bash(names);
    case 'zsh':
      return `autoload -U +X bashcompinit && bashcompinit\n${bash(names)}`;
    case 'fish':
      return fish(names);
    default:
      throw new UsageError('completion: name a shell: bash, zsh or fish', 'see godwit completion --help');
  }
}

function bash(names: string): string {
  return `_godwit() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names}" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$(godwit queues --json 2>/dev/null | sed -n 's/^    "name": "\\(.*\\)",$/\\1/p')" -- "$word"))
  fi
}
complete -F _godwit godwit
`;
}

function fish(names: string): string {
  return `complete -c godwit -f -n __fish_use_subcommand -a "${names}"
complete -c godwit -f -n 'not __fish_use_subcommand' -a "(godwit queues --json 2>/dev/null | string match -rg '^    \\"name\\": \\"(.*)\\",$')"
`;
}
