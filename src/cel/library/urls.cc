// URLs: url("https://example.com").getHost().
#include "cel/library/function.h"
#include "cel/values/list.h"
#include "cel/values/map.h"
#include "cel/values/url.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

Value Parse(Arena& arena, Args args) {
  const Url* const url = Url::Parse(arena, args[0].text());
  return url == nullptr ? Value::Error("not a URL") : Value::Of(url);
}
Value IsUrl(Arena&, Args args) { return Value::Bool(Url::IsRequestUri(args[0].text())); }
Value Scheme(Arena&, Args args) { return Value::String(args[0].url().scheme); }
Value Host(Arena&, Args args) { return Value::String(args[0].url().host); }
Value Hostname(Arena&, Args args) { return Value::String(args[0].url().Hostname()); }
Value Port(Arena&, Args args) { return Value::String(args[0].url().Port()); }
Value EscapedPath(Arena&, Args args) { return Value::String(args[0].url().escaped_path); }

Value Query(Arena& arena, Args args) {
  const auto pairs = args[0].url().Query();
  TableMap* const map = TableMap::New(arena, pairs.size(), false);
  for (const auto& [key, value] : pairs) {
    const Value name = StringValue(arena, key);
    const Value text[] = {StringValue(arena, value)};
    const std::span<Value> stored = arena.NewArray<Value>(1);
    stored[0] = text[0];
    const ListValue* values = ListValue::Of(arena, stored);
    if (const auto earlier = map->Find(name)) {
      values = ListValue::Add(arena, earlier->list(), *values);
    }
    map->Put(arena, name, Value::Of(values));
  }
  return Value::Of(map);
}

}  // namespace

void DeclareUrls(Declarer& declare) {
  using namespace types;
  TypeStore& types = declare.types();
  declare.Global("url", "string_to_url", {&kString}, &kUrl, Parse);
  declare.Member("getScheme", "url_get_scheme", {&kUrl}, &kString, Scheme);
  declare.Member("getHost", "url_get_host", {&kUrl}, &kString, Host);
  declare.Member("getHostname", "url_get_hostname", {&kUrl}, &kString, Hostname);
  declare.Member("getPort", "url_get_port", {&kUrl}, &kString, Port);
  declare.Member("getEscapedPath", "url_get_escaped_path", {&kUrl}, &kString, EscapedPath);
  declare.Member("getQuery", "url_get_query", {&kUrl}, types.Map(&kString, types.List(&kString)),
                 Query);
  declare.Global("isURL", "is_url_string", {&kString}, &kBool, IsUrl);
}

}  // namespace nos::cel
