/**
 * How an engine addresses a queue: by its name. `<name>:<partition>` is reserved for queues that are spread over several lines
 * (names have no colon). There are no partitions yet. Keys, doorbells, leases and events already use the address, so they are
 * ready for them.
 */
export type QueueRef = string;
