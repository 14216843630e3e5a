/**
 * How an engine addresses a queue: by its name, or as `<name>:<partition>` for a further line of a queue that is spread over several
 * (names have no colon). Whatever is stored or sent for a line bears its address, and nobody takes it for the name of a queue that is
 * registered. There are no partitions yet; keys, doorbells, leases and events are ready for them.
 */
export type QueueRef = string;
