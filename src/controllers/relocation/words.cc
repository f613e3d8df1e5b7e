// Encodes and decodes the annotations of relocations. Anyone may have changed them, so sizes and
// values are checked.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "controllers/relocation/placeholder.h"
#include "controllers/relocations.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = size_t{64} * 1024, kMaxName = 600, kMaxListed = 1000, kMaxId = 40,
                 kMaxTime = 60, kMaxMoved = 100;
constexpr Duration kClocksDiffer = std::chrono::minutes(5);

constexpr std::array<std::pair<Removal::State, std::string_view>, 3> kStates = {
    {{Removal::State::kEmptying, "Emptying"},
     {Removal::State::kEmptied, "Emptied"},
     {Removal::State::kAsked, "Asked"}}};

Result<Json> ReadObject(std::string_view text) {
  if (text.size() > kMaxText) {
    return Invalid(fmt::format("{} bytes are too many: {} at most", text.size(), kMaxText));
  }
  NOS_ASSIGN(Json object, ParseJson(text));
  if (!object.is_object()) return Invalid("is not an object");
  return object;
}

Status TakeText(const Json& object, std::string_view key, bool needed, std::string& to) {
  const Json* value = Find(object, key);
  if (value == nullptr) return needed ? Invalid(fmt::format("{}: is missing", key)) : Status::Ok();
  if (!value->is_string()) return Invalid(fmt::format("{}: is not a string", key));
  to = nos::View(value->get_string());
  if ((needed && to.empty()) || to.size() > kMaxName) {
    return Invalid(fmt::format("{}: is empty or too long", key));
  }
  return Status::Ok();
}

Status TakeNumber(const Json& object, std::string_view key, int64_t least, int64_t most,
                  int32_t& to) {
  const Json* value = Find(object, key);
  const bool good = value != nullptr && value->is_int64() && value->get_int64() >= least &&
                    value->get_int64() <= most;
  if (!good) return Invalid(fmt::format("{}: is not a number from {} to {}", key, least, most));
  to = static_cast<int32_t>(value->get_int64());
  return Status::Ok();
}

Status TakeTime(const Json& object, std::string_view key, Time& to) {
  const auto time = ParseTime(Shortened(FindString(object, key), kMaxTime));
  if (!time.ok()) return time.status().Within(key);
  to = *time;
  return Status::Ok();
}

Status TakeList(const Json& object, std::string_view key, std::vector<std::string>& to) {
  const Json* value = Find(object, key);
  if (value == nullptr) return Status::Ok();
  const bool good = value->is_array() && value->get_array().size() <= kMaxListed &&
                    std::ranges::all_of(value->get_array(), &Json::is_string);
  if (!good) {
    return Invalid(fmt::format("{}: is not a list of at most {} strings", key, kMaxListed));
  }
  for (const Json& one : value->get_array()) to.emplace_back(nos::View(one.get_string()));
  return Status::Ok();
}

Status TakeCordoned(const Json& object, bool& to) {
  const Json* cordoned = Find(object, "cordoned");
  if (cordoned == nullptr) return Status::Ok();
  if (!cordoned->is_bool()) return Invalid("cordoned: is neither true nor false");
  to = cordoned->get_bool();
  return Status::Ok();
}

// The last entries, as many as ReadPlaceFor accepts.
JsonArray ListOf(const std::vector<std::string>& names) {
  JsonArray list;
  const size_t first = names.size() > kMaxListed ? names.size() - kMaxListed : 0;
  for (size_t i = first; i < names.size(); ++i) list.emplace_back(names[i]);
  return list;
}

bool IsKey(std::string_view text) {
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < text.size() &&
         text.find('/', slash + 1) == std::string_view::npos;
}

Status CheckPlace(const PlaceFor& what) {
  if (!IsRelocationId(what.id)) return Invalid("id: is not one of a relocation");
  if (!IsKey(what.pod)) return Invalid("pod: is not namespace/name");
  if (!what.for_pod.empty() && !IsKey(what.for_pod)) return Invalid("for: is not namespace/name");
  return Status::Ok();
}

}  // namespace

bool IsRelocationId(std::string_view id) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !id.empty() && id.size() <= kMaxId && good(id.front()) && good(id.back()) &&
         std::ranges::all_of(id, [&](char c) { return good(c) || c == '-'; });
}

std::string Relocations::NewId(uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string digits;
  do {
    digits += kDigits[number % kDigits.size()];
    number /= kDigits.size();
  } while (number > 0);
  std::ranges::reverse(digits);
  return "r-" + digits;
}

std::string WriteRemoval(const Removal& removal) {
  JsonObject object = {
      {"pool", removal.pool}, {"id", removal.id}, {"since", FormatTime(removal.since)}};
  for (const auto& [state, name] : kStates) {
    if (state == removal.state) object["state"] = name;
  }
  if (removal.wanted) object["wanted"] = *removal.wanted;
  if (removal.was_cordoned) object["cordoned"] = true;
  return WriteJson(object);
}

Result<Removal> ReadRemoval(std::string_view text) {
  NOS_ASSIGN(const Json object, ReadObject(text));
  Removal removal;
  std::string state;
  NOS_RETURN_IF_ERROR(TakeText(object, "pool", true, removal.pool));
  NOS_RETURN_IF_ERROR(TakeText(object, "id", true, removal.id));
  if (!IsRelocationId(removal.id)) return Invalid("id: is not one of a relocation");
  NOS_RETURN_IF_ERROR(TakeText(object, "state", true, state));
  NOS_RETURN_IF_ERROR(TakeTime(object, "since", removal.since));
  const auto known =
      std::ranges::find(kStates, std::string_view(state), [](const auto& s) { return s.second; });
  if (known == kStates.end()) return Invalid("state: is none of Emptying, Emptied, Asked");
  removal.state = known->first;
  if (Find(object, "wanted") != nullptr) {
    int32_t wanted = 0;
    NOS_RETURN_IF_ERROR(TakeNumber(object, "wanted", 0, INT32_MAX, wanted));
    removal.wanted = wanted;
  }
  NOS_RETURN_IF_ERROR(TakeCordoned(object, removal.was_cordoned));
  return removal;
}

std::string WriteMovesAway(const MovesAway& mark) {
  JsonObject object = {{"id", mark.id}, {"for", mark.for_pod}, {"since", FormatTime(mark.since)}};
  if (mark.was_cordoned) object["cordoned"] = true;
  return WriteJson(object);
}

Result<MovesAway> ReadMovesAway(std::string_view text) {
  NOS_ASSIGN(const Json object, ReadObject(text));
  MovesAway mark;
  NOS_RETURN_IF_ERROR(TakeText(object, "id", true, mark.id));
  if (!IsRelocationId(mark.id)) return Invalid("id: is not one of a relocation");
  NOS_RETURN_IF_ERROR(TakeText(object, "for", true, mark.for_pod));
  if (!IsKey(mark.for_pod)) return Invalid("for: is not namespace/name");
  NOS_RETURN_IF_ERROR(TakeTime(object, "since", mark.since));
  NOS_RETURN_IF_ERROR(TakeCordoned(object, mark.was_cordoned));
  return mark;
}

std::optional<MovesAway> MovesAwayOf(const cluster::Node& node) {
  const auto text = node.meta.annotations.find(kMovesAway);
  if (text == node.meta.annotations.end()) return std::nullopt;
  auto mark = ReadMovesAway(text->second);
  if (!mark.ok()) return std::nullopt;
  return *std::move(mark);
}

std::optional<Removal> RemovalOf(const cluster::Node& node) {
  const auto mark = node.meta.annotations.find(kRemoval);
  if (mark == node.meta.annotations.end()) return std::nullopt;
  auto removal = ReadRemoval(mark->second);
  if (!removal.ok()) return std::nullopt;
  return *std::move(removal);
}

std::string WriteMoved(const MovedById& moved) {
  std::vector<MovedById::const_iterator> order;
  for (auto one = moved.begin(); one != moved.end(); ++one) order.push_back(one);
  std::ranges::sort(order, std::greater(), [](const auto& one) { return one->second.at; });
  order.resize(std::min(order.size(), kMaxMoved));
  JsonObject object;
  for (const auto& one : order) {
    JsonObject pods;
    for (const auto& [ns, count] : one->second.pods) pods[ns] = count;
    object[one->first] = JsonObject{{"at", FormatTime(one->second.at)}, {"pods", std::move(pods)}};
  }
  return WriteJson(object);
}

Result<MovedById> ReadMoved(std::string_view text) {
  NOS_ASSIGN(const Json object, ReadObject(text));
  MovedById all;
  for (const auto& [id, one] : object.get_object()) {
    if (!IsRelocationId(id)) return Invalid("a member is not the id of a relocation");
    Moved& moved = all[std::string(id)];
    NOS_RETURN_IF_ERROR(TakeTime(one, "at", moved.at));
    const Json* pods = Find(one, "pods");
    if (pods == nullptr || !pods->is_object()) return Invalid("pods: is not an object");
    for (const auto& [ns, count] : pods->get_object()) {
      NOS_RETURN_IF_ERROR(TakeNumber(*pods, ns, 1, kMaxMovesAtOnce, moved.pods[std::string(ns)]));
    }
  }
  return all;
}

MovedById MovedFrom(const cluster::Node& node, Time now) {
  const auto text = node.meta.annotations.find(kMovedFrom);
  if (text == node.meta.annotations.end()) return {};
  auto moved = ReadMoved(text->second);
  if (!moved.ok()) return {};
  std::erase_if(*moved, [&](const auto& one) {
    return one.second.at > now + kClocksDiffer || now - one.second.at >= kMovedCounts;
  });
  return *std::move(moved);
}

std::string WritePlaceFor(const PlaceFor& what) {
  JsonObject object = {{"id", what.id},
                       {"of", what.of},
                       {"pod", what.pod},
                       {"uid", what.uid},
                       {"from", what.from},
                       {"to", what.to},
                       {"since", FormatTime(what.since)}};
  if (!what.owner.empty()) object["owner"] = what.owner;
  if (!what.for_pod.empty()) object["for"] = what.for_pod;
  if (what.held) object["held"] = FormatTime(*what.held);
  if (!what.ended.empty()) object["ended"] = ListOf(what.ended);
  if (!what.counted.empty()) object["counted"] = ListOf(what.counted);
  return WriteJson(object);
}

Result<PlaceFor> ReadPlaceFor(std::string_view text) {
  NOS_ASSIGN(const Json object, ReadObject(text));
  PlaceFor what;
  NOS_RETURN_IF_ERROR(TakeText(object, "id", true, what.id));
  NOS_RETURN_IF_ERROR(TakeNumber(object, "of", 1, kMaxMovesAtOnce, what.of));
  NOS_RETURN_IF_ERROR(TakeText(object, "pod", true, what.pod));
  NOS_RETURN_IF_ERROR(TakeText(object, "uid", true, what.uid));
  NOS_RETURN_IF_ERROR(TakeText(object, "owner", false, what.owner));
  NOS_RETURN_IF_ERROR(TakeText(object, "from", true, what.from));
  NOS_RETURN_IF_ERROR(TakeText(object, "to", true, what.to));
  NOS_RETURN_IF_ERROR(TakeText(object, "for", false, what.for_pod));
  NOS_RETURN_IF_ERROR(TakeTime(object, "since", what.since));
  if (Find(object, "held") != nullptr) {
    NOS_RETURN_IF_ERROR(TakeTime(object, "held", what.held.emplace()));
  }
  NOS_RETURN_IF_ERROR(TakeList(object, "ended", what.ended));
  NOS_RETURN_IF_ERROR(TakeList(object, "counted", what.counted));
  NOS_RETURN_IF_ERROR(CheckPlace(what));
  return what;
}

}  // namespace nos::controllers
