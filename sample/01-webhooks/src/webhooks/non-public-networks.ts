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

/** Public addresses are in 2000::/3 only; an IPv4 address written as IPv6 is judged as IPv4. */
const IPV6: readonly (readonly [network: string, bits: number])[] = [
  ['::', 96], // unspecified, loopback, and IPv4 addresses in an old notation
  ['::ffff:0:0:0', 96], // IPv4 addresses translated
  ['1::', 16], // reserved
  ['2::', 15], // reserved
  ['4::', 14], // reserved
  ['8::', 13], // reserved
  ['10::', 12], // reserved
  ['20::', 11], // reserved
  ['40::', 10], // reserved, IPv4 addresses behind NAT64 among them (64:ff9b::/96)
  ['80::', 9], // reserved
  ['100::', 8], // discard
  ['200::', 7], // reserved
  ['400::', 6], // reserved
  ['800::', 5], // reserved
  ['1000::', 4], // reserved
  ['2001::', 23], // protocol assignments, Teredo among them
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4: IPv4 addresses in disguise
  ['3fff::', 20], // documentation
  ['4000::', 2], // reserved, segment routing among them (5f00::/16)
  ['8000::', 1], // reserved, private, link-local and multicast
];

/** Every network that is not the public internet. */
export function nonPublicNetworks(): BlockList {
  const networks = new BlockList();
  for (const [network, bits] of IPV4) networks.addSubnet(network, bits, 'ipv4');
  for (const [network, bits] of IPV6) networks.addSubnet(network, bits, 'ipv6');
  return networks;
}
