import { BlockList } from 'node:net';

/** IPv4 addresses written as IPv6 (`::ffff:10.0.0.1`) are found in the IPv4 networks by `BlockList` itself. */
const IPV4: readonly (readonly [network: string, bits: number])[] = [
  ['0.0.0.0', 8], // this host
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // shared by customers of a carrier
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local, where clouds serve credentials
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, broadcast
];

const IPV6: readonly (readonly [network: string, bits: number])[] = [
  ['::', 96], // unspecified, loopback, and IPv4 addresses in an old notation
  ['64:ff9b::', 96], // IPv4 addresses behind NAT64
  ['64:ff9b:1::', 48], // the same, local
  ['100::', 64], // discard
  ['2001::', 23], // protocol assignments, Teredo among them
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4: IPv4 addresses in disguise
  ['fc00::', 7], // private
  ['fe80::', 10], // link-local
  ['fec0::', 10], // private, in an old notation
  ['ff00::', 8], // multicast
];

/** Every network that is not the public internet. */
export function nonPublicNetworks(): BlockList {
  const networks = new BlockList();
  for (const [network, bits] of IPV4) networks.addSubnet(network, bits, 'ipv4');
  for (const [network, bits] of IPV6) networks.addSubnet(network, bits, 'ipv6');
  return networks;
}
