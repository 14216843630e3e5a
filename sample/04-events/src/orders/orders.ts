import { defineJob } from 'godwit';

export const ORDERS = 'orders';

export interface Order {
  readonly order: string;
}

export const charge = defineJob<Order & { readonly cents: number }>(ORDERS, 'charge');
export const ship = defineJob<Order>(ORDERS, 'ship');
