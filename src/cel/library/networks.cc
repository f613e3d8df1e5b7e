// IP addresses and networks: cidr("10.0.0.0/8").containsIP("10.1.2.3").
#include "cel/library/function.h"
#include "cel/values/network.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

constexpr Value NoAddress() { return Value::Error("not an IP address"); }
constexpr Value NoNetwork() { return Value::Error("not a CIDR"); }

Value ParseIp(Arena& arena, Args args) {
  const auto ip = IpAddress::Parse(args[0].text());
  return ip ? Value::Of(arena.New<IpAddress>(*ip)) : NoAddress();
}
Value IsIp(Arena&, Args args) { return Value::Bool(IpAddress::Parse(args[0].text()).has_value()); }
Value IsCanonical(Arena&, Args args) {
  const auto ip = IpAddress::Parse(args[0].text());
  return ip ? Value::Bool(ip->ToString() == args[0].text()) : NoAddress();
}
Value IpToString(Arena& arena, Args args) { return StringValue(arena, args[0].ip().ToString()); }
Value Family(Arena&, Args args) { return Value::Int(args[0].ip().v6 ? 6 : 4); }

template <bool (IpAddress::*kTest)() const>
Value Test(Arena&, Args args) {
  return Value::Bool((args[0].ip().*kTest)());
}

Value ParseCidr(Arena& arena, Args args) {
  const auto cidr = Cidr::Parse(args[0].text());
  return cidr ? Value::Of(arena.New<Cidr>(*cidr)) : NoNetwork();
}
Value IsCidr(Arena&, Args args) { return Value::Bool(Cidr::Parse(args[0].text()).has_value()); }
Value CidrToString(Arena& arena, Args args) {
  return StringValue(arena, args[0].cidr().ToString());
}
Value ContainsIp(Arena&, Args args) { return Value::Bool(args[0].cidr().Contains(args[1].ip())); }
Value ContainsIpText(Arena&, Args args) {
  const auto ip = IpAddress::Parse(args[1].text());
  return ip ? Value::Bool(args[0].cidr().Contains(*ip)) : NoAddress();
}
Value ContainsCidr(Arena&, Args args) {
  return Value::Bool(args[0].cidr().Contains(args[1].cidr()));
}
Value ContainsCidrText(Arena&, Args args) {
  const auto cidr = Cidr::Parse(args[1].text());
  return cidr ? Value::Bool(args[0].cidr().Contains(*cidr)) : NoNetwork();
}
Value CidrIp(Arena&, Args args) { return Value::Of(&args[0].cidr().address); }
Value PrefixLength(Arena&, Args args) { return Value::Int(args[0].cidr().bits); }
Value Masked(Arena& arena, Args args) {
  return Value::Of(arena.New<Cidr>(args[0].cidr().Masked()));
}

}  // namespace

void DeclareNetworks(Declarer& declare) {
  using namespace types;
  const Type* const ip = &kIp;
  const Type* const cidr = &kCidr;
  declare.Global("ip", "string_to_ip", {&kString}, ip, ParseIp);
  declare.Member("family", "ip_family", {ip}, &kInt, Family);
  declare.Global("ip.isCanonical", "ip_is_canonical", {&kString}, &kBool, IsCanonical);
  declare.Member("isUnspecified", "ip_is_unspecified", {ip}, &kBool,
                 Test<&IpAddress::IsUnspecified>);
  declare.Member("isLoopback", "ip_is_loopback", {ip}, &kBool, Test<&IpAddress::IsLoopback>);
  declare.Member("isLinkLocalMulticast", "ip_is_link_local_multicast", {ip}, &kBool,
                 Test<&IpAddress::IsLinkLocalMulticast>);
  declare.Member("isLinkLocalUnicast", "ip_is_link_local_unicast", {ip}, &kBool,
                 Test<&IpAddress::IsLinkLocalUnicast>);
  declare.Member("isGlobalUnicast", "ip_is_global_unicast", {ip}, &kBool,
                 Test<&IpAddress::IsGlobalUnicast>);
  declare.Global("isIP", "is_ip", {&kString}, &kBool, IsIp);
  declare.Global("string", "ip_to_string", {ip}, &kString, IpToString);
  declare.Global("cidr", "string_to_cidr", {&kString}, cidr, ParseCidr);
  declare.Member("containsIP", "cidr_contains_ip_string", {cidr, &kString}, &kBool, ContainsIpText);
  declare.Member("containsIP", "cidr_contains_ip_ip", {cidr, ip}, &kBool, ContainsIp);
  declare.Member("containsCIDR", "cidr_contains_cidr_string", {cidr, &kString}, &kBool,
                 ContainsCidrText);
  declare.Member("containsCIDR", "cidr_contains_cidr", {cidr, cidr}, &kBool, ContainsCidr);
  declare.Member("ip", "cidr_ip", {cidr}, ip, CidrIp);
  declare.Member("prefixLength", "cidr_prefix_length", {cidr}, &kInt, PrefixLength);
  declare.Member("masked", "cidr_masked", {cidr}, cidr, Masked);
  declare.Global("isCIDR", "is_cidr", {&kString}, &kBool, IsCidr);
  declare.Global("string", "cidr_to_string", {cidr}, &kString, CidrToString);
}

}  // namespace nos::cel
