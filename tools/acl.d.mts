export interface AclOptions {
  /** That of `forRoot`. */
  readonly prefix: string;
  /** `producer`: adds jobs, looks at them and acts on them, and claims none. @default 'both' */
  readonly role?: 'producer' | 'both';
  /** With what only Redis Cluster needs. @default false */
  readonly cluster?: boolean;
  /** Version of the server. From 7.2 on ioredis may tell it its name. @default '7.0' */
  readonly redis?: string;
}

/** Rules for `ACL SETUSER`: patterns of the keys and every command, and nothing else. */
export function aclRules(options: AclOptions): string[];

/** Every command that the text of a script may run, as rules name it. */
export function commandsOf(text: string): string[];
