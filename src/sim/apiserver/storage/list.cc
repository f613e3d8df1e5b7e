#include "sim/apiserver/storage/list.h"

#include <fmt/format.h>

#include "base/text.h"
#include "codec/base64.h"
#include "sim/apiserver/storage/request_options.h"

namespace nos::sim {
namespace {

// The position of a continued list: the version that it shows and the last key returned.
struct PageToken {
  uint64_t version = 0;
  ObjectKey last;
};

std::string WriteToken(const PageToken& token) {
  return EncodeBase64(
      WriteJson({{"v", token.version}, {"ns", token.last.ns}, {"name", token.last.name}}));
}

Outcome<PageToken> ReadToken(std::string_view text) {
  const auto decoded = DecodeBase64(text);
  const auto json = ParseJson(decoded.value_or(""));
  const Json* version = json.ok() ? Find(*json, "v") : nullptr;
  if (version == nullptr || !version->is_int64() || version->get_int64() < 0) {
    return BadRequest("continue key is not valid");
  }
  return PageToken{static_cast<uint64_t>(version->get_int64()),
                   {std::string(FindString(*json, "ns")), std::string(FindString(*json, "name"))}};
}

Outcome<int64_t> ParseLimit(const kube::ApiRequest& request) {
  const std::string text = request.Query("limit");
  if (text.empty()) return int64_t{0};
  const auto limit = ParseInt(text);
  if (!limit || *limit < 0) return BadRequest("limit: must be a whole number, 0 or more");
  return *limit;
}

// The collection at `version`.
Outcome<Objects> CollectionAt(const ApiState& state, const std::string& storage, uint64_t version) {
  Objects objects = state.store.All(storage);
  const auto changed = state.hub->StateAt(storage, version);
  if (!changed) {
    return Expired(
        "The provided continue parameter or resource version is too old to display a "
        "consistent list result. Start a new list without it.");
  }
  for (const auto& [key, object] : *changed) {
    if (object == nullptr) {
      objects.erase(key);
    } else {
      objects[key] = object;
    }
  }
  return objects;
}

// The matching objects after `token.last`, up to `limit` (0: all).
Listing Page(const Objects& objects, const Selection& selection, const PageToken& token,
             int64_t limit) {
  Listing listing;
  const ObjectKey from = std::max(token.last, ObjectKey{selection.ns, ""});
  PageToken next{token.version, {}};
  bool more = false;
  for (auto i = objects.upper_bound(from); i != objects.end() && !more; ++i) {
    if (!selection.ns.empty() && i->first.ns != selection.ns) break;
    if (!selection.Matches(*i->second)) continue;
    more = limit > 0 && static_cast<int64_t>(listing.objects.size()) == limit;
    if (more) break;
    listing.objects.push_back(i->second);
    next.last = i->first;
  }
  listing.metadata = {{"resourceVersion", fmt::to_string(token.version)}};
  if (more) listing.metadata.get_object()["continue"] = WriteToken(next);
  return listing;
}

}  // namespace

Refusal TooLargeVersion(uint64_t wanted, uint64_t current) {
  Refusal refusal = MakeRefusal(
      504, "Timeout",
      fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current));
  refusal.causes.push_back({"ResourceVersionTooLarge", "", "Too large resource version"});
  return refusal;
}

Outcome<uint64_t> ParseVersion(std::string_view text) {
  if (text.empty()) return uint64_t{0};
  const auto version = ParseInt(text);
  if (!version || *version < 0) {
    return BadRequest(fmt::format("resourceVersion: Invalid value: \"{}\"", text.substr(0, 64)));
  }
  return static_cast<uint64_t>(*version);
}

Outcome<Selection> ParseSelection(const ResourceType& type, const std::string& ns,
                                  const kube::ApiRequest& request) {
  Selection selection{ns, {}, {}};
  NOS_ASSIGN(selection.labels, LabelSelector::Parse(request.Query("labelSelector")));
  NOS_ASSIGN(selection.fields, FieldSelector::Parse(type, request.Query("fieldSelector")));
  return selection;
}

Outcome<Listing> ListObjects(const ApiState& state, const ResourceType& type,
                             const Selection& selection, const kube::ApiRequest& request) {
  const uint64_t current = state.store.version();
  if (auto refusal = CheckReadOptions(request, /*watch=*/false)) return *refusal;
  NOS_ASSIGN(const int64_t limit, ParseLimit(request));
  NOS_ASSIGN(const uint64_t wanted, ParseVersion(request.Query("resourceVersion")));
  if (wanted > current) return TooLargeVersion(wanted, current);
  PageToken token{current, {}};
  if (const std::string text = request.Query("continue"); !text.empty()) {
    NOS_ASSIGN(token, ReadToken(text));
    if (token.version > current) return BadRequest("continue key is not valid");
  } else if (request.Query("resourceVersionMatch") == "Exact" && wanted > 0) {
    token.version = wanted;
  }
  if (token.version == current) {
    return Page(state.store.All(type.storage), selection, token, limit);
  }
  NOS_ASSIGN(const Objects objects, CollectionAt(state, type.storage, token.version));
  return Page(objects, selection, token, limit);
}

}  // namespace nos::sim
