export interface AclOptions {
  /** That of `forRoot`. */
  readonly prefix: string;
  /** `producer`: may add, read and change jobs, but not claim them. @default 'both' */
  readonly role?: 'producer' | 'both';
  /** Whether to include the commands that only Redis Cluster needs. @default false */
  readonly cluster?: boolean;
  /** Version of the server. From 7.2 on, ioredis may send its name and version. @default '7.0' */
  readonly redis?: string;
}

/** Rules for `ACL SETUSER`: patterns of the keys and every command, and nothing else. */
export function aclRules(options: AclOptions): string[];

/** Every command that the text of a script may run, in the form of ACL rules. */
export function commandsOf(text: string): string[];
