#include "sim/apiserver/storage/store.h"

#include <fmt/format.h>

namespace nos::sim {

std::vector<std::string_view> OwnersOf(const Json& object) {
  std::vector<std::string_view> owners;
  const Json* references = Find(object, "metadata", "ownerReferences");
  if (references == nullptr || !references->is_array()) return owners;
  for (const Json& reference : references->get_array()) {
    owners.push_back(FindString(reference, "uid"));
  }
  return owners;
}

const Objects& Store::All(const std::string& storage) const {
  static const Objects kNone;
  const auto found = objects_.find(storage);
  return found == objects_.end() ? kNone : found->second;
}

ObjectRef Store::Get(const Place& place) const {
  const Objects& objects = All(place.storage);
  const auto found = objects.find(place.key);
  return found == objects.end() ? nullptr : found->second;
}

bool Store::AnyIn(std::string_view ns) const {
  for (const auto& [storage, objects] : objects_) {
    const auto first = objects.lower_bound({std::string(ns), ""});
    if (first != objects.end() && first->first.ns == ns) return true;
  }
  return false;
}

std::vector<Place> Store::AllIn(std::string_view ns) const {
  std::vector<Place> places;
  for (const auto& [storage, objects] : objects_) {
    for (auto i = objects.lower_bound({std::string(ns), ""});
         i != objects.end() && i->first.ns == ns; ++i) {
      places.push_back({storage, i->first});
    }
  }
  return places;
}

std::optional<Place> Store::ByUid(std::string_view uid) const {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return std::nullopt;
  return found->second;
}

std::set<Place> Store::DependentsOf(std::string_view uid) const {
  const auto found = dependents_.find(uid);
  return found == dependents_.end() ? std::set<Place>() : found->second;
}

ObjectRef Store::Put(const Place& place, Json object) {
  const ObjectRef before = Get(place);
  MakeObject(object, "metadata")["resourceVersion"] = fmt::to_string(++version_);
  auto after = std::make_shared<const Json>(std::move(object));
  if (before != nullptr) {
    Unindex(place, *before);
  } else {
    ++size_;
  }
  Index(place, *after);
  objects_[place.storage][place.key] = after;
  const auto kind = before == nullptr ? Change::Kind::kAdded : Change::Kind::kModified;
  hub_->Append(place.storage, {version_, kind, place.key, after, before});
  return after;
}

ObjectRef Store::Remove(const Place& place) {
  const ObjectRef before = Get(place);
  Json object = *before;
  MakeObject(object, "metadata")["resourceVersion"] = fmt::to_string(++version_);
  auto last = std::make_shared<const Json>(std::move(object));
  Unindex(place, *before);
  NeverExpire(place);
  --size_;
  objects_[place.storage].erase(place.key);
  hub_->Append(place.storage, {version_, Change::Kind::kDeleted, place.key, last, before});
  return last;
}

void Store::ExpireAt(const Place& place, Time when) {
  NeverExpire(place);
  expires_[place] = when;
  by_expiry_.emplace(when, place);
}

void Store::NeverExpire(const Place& place) {
  const auto found = expires_.find(place);
  if (found == expires_.end()) return;
  by_expiry_.erase({found->second, place});
  expires_.erase(found);
}

std::vector<Place> Store::Expired(Time now) const {
  std::vector<Place> places;
  for (auto i = by_expiry_.begin(); i != by_expiry_.end() && i->first <= now; ++i) {
    places.push_back(i->second);
  }
  return places;
}

void Store::Drop(const std::string& storage) {
  objects_.erase(storage);
  hub_->Close(storage);
}

void Store::Index(const Place& place, const Json& object) {
  by_uid_[std::string(FindString(object, "metadata", "uid"))] = place;
  for (const std::string_view owner : OwnersOf(object)) {
    dependents_[std::string(owner)].insert(place);
  }
}

void Store::Unindex(const Place& place, const Json& object) {
  by_uid_.erase(std::string(FindString(object, "metadata", "uid")));
  for (const std::string_view owner : OwnersOf(object)) {
    const auto found = dependents_.find(owner);
    if (found == dependents_.end()) continue;
    found->second.erase(place);
    if (found->second.empty()) dependents_.erase(found);
  }
}

std::string Store::NewUid() {
  const uint64_t a = random_.Next();
  const uint64_t b = random_.Next();
  // UUID version 4, variant 1 (RFC 4122).
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff,
                     a & 0xfff, 8 + ((b >> 60) & 3), (b >> 48) & 0xfff, b & 0xffffffffffffULL);
}

std::string Store::NewSuffix() {
  // Alphabet of k8s.io/apimachinery/pkg/util/rand: no vowels and no characters that look alike.
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kAlphabet[random_.Below(kAlphabet.size())];
  return suffix;
}

}  // namespace nos::sim
