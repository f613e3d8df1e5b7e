#include "quota/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <map>
#include <tuple>

namespace nos::quota {
namespace {

using cluster::ElasticQuota;
using cluster::ResourceId;

// a * b / c, rounded down, without overflow. REQUIRES: a, b >= 0, c > 0.
Amount MultiplyDivide(Amount a, Amount b, Amount c) {
  if (a <= INT64_MAX && b <= INT64_MAX) return a * b / c;
  using Wide = boost::multiprecision::int512_t;
  const Wide quotient = Wide(a) * Wide(b) / Wide(c);
  return static_cast<Amount>(quotient);
}

Amount Positive(Amount amount) { return std::max<Amount>(amount, 0); }

// Rank of quotas that name the same namespace: the lowest is in force.
bool GoesBefore(const SharedQuota& a, const SharedQuota& b) {
  const auto rank = [](const ElasticQuota& quota) {
    return std::tuple(!quota.composite, quota.meta.created, std::string_view(quota.meta.ns),
                      std::string_view(quota.meta.name));
  };
  return rank(*a) < rank(*b);
}

bool ComesFirst(const SharedQuota& a, const SharedQuota& b) {
  return std::tuple(!a->composite, a->Key()) < std::tuple(!b->composite, b->Key());
}

std::string NameOf(const ElasticQuota& quota) {
  return (quota.composite ? "composite elastic quota " : "elastic quota ") + quota.Key();
}

Terms TermsOf(const SharedQuota& quota) {
  return {quota,
          Amounts::From(quota->min),
          Amounts::From(quota->max),
          Amounts::From(quota->borrowing_limit),
          Amounts::From(quota->lending_limit),
          Amounts::From(quota->min),
          {},
          {},
          {},
          {},
          {},
          {}};
}

}  // namespace

std::vector<SharedQuota> QuotasOf(const cluster::ClusterContext& context) {
  std::vector<SharedQuota> quotas;
  for (const auto* table : {&context.quotas, &context.composite_quotas}) {
    for (const auto& [key, quota] : table->rows()) quotas.push_back(quota);
  }
  return quotas;
}

std::string Refusal::Text() const {
  std::string name = NameOf(*quota);
  const std::string& what = cluster::ResourceName(resource);
  const auto text = [&](Amount amount) { return TextOf(resource, amount); };
  switch (kind) {
    case Kind::kMax:
      return fmt::format("{} allows at most {} of {}: {} used, {} asked for", name, text(limit),
                         what, text(used), text(asked));
    case Kind::kBorrowingLimit:
      return fmt::format("{} may borrow at most {} of {}: {} borrowed with the {} asked for", name,
                         text(limit), what, text(used), text(asked));
    case Kind::kNothingIdle:
      return fmt::format("{} asks for {} of {}: with it {} would be borrowed, and {} is idle", name,
                         text(asked), what, text(used), text(limit));
  }
  return name;
}

std::string Refusal::Remedy() const {
  const std::string& what = cluster::ResourceName(resource);
  const std::string lack = TextOf(resource, Lack());
  const auto or_wait = [&](std::string_view pods) {
    return held < Lack() ? ""
                         : fmt::format(", or wait until {} that have {} of it end", pods, lack);
  };
  const auto raise = [&](std::string_view field, const std::string& to) {
    return fmt::format("raise {} of {} in {} {}{}", field, what, NameOf(*quota), to,
                       or_wait("pods of its namespaces"));
  };
  switch (kind) {
    case Kind::kMax:
      return raise("max", "to " + TextOf(resource, limit + Lack()));
    case Kind::kBorrowingLimit:
      return raise("borrowingLimit", "to " + TextOf(resource, used));
    case Kind::kNothingIdle:
      return fmt::format("raise min of {} in {} by {}{}", what, NameOf(*quota), lack,
                         or_wait("pods"));
  }
  return "";
}

void Balance::SharedCapacity::Add(const SharedCapacity& other, int sign) {
  min += sign * other.min;
  weighted += sign * other.weighted;
  used += sign * other.used;
  lendable += sign * other.lendable;
  borrowed += sign * other.borrowed;
}

Balance::Balance(std::vector<SharedQuota> quotas) { PutInForce(std::move(quotas)); }

void Balance::PutInForce(std::vector<SharedQuota> quotas) {
  // 1. Give each namespace to the quota with the highest rank: a namespace has one quota in force.
  std::ranges::sort(quotas, ComesFirst);
  std::vector<Terms> terms;
  terms.reserve(quotas.size());
  for (const SharedQuota& quota : quotas) terms.push_back(TermsOf(quota));
  std::vector<size_t> by_rank(quotas.size());
  for (size_t i = 0; i < by_rank.size(); ++i) by_rank[i] = i;
  std::ranges::sort(by_rank, GoesBefore, [&](size_t i) { return quotas[i]; });
  for (const size_t i : by_rank) {
    for (const std::string& ns : quotas[i]->namespaces) {
      const auto [other, fresh] = by_namespace_.emplace(ns, i);
      if (fresh) {
        terms[i].namespaces.push_back(ns);
      } else if (other->second != i) {
        terms[i].problems.push_back(
            fmt::format("not in force in namespace {}: {} is", ns, NameOf(*quotas[other->second])));
      }
    }
    std::ranges::sort(terms[i].namespaces);
  }
  // 2. Resolve the tree. Parents come first: which entries of min are dropped depends on the
  //    ancestors. Own mins and heirs are computed from the remaining entries.
  FindParents(terms);
  RemoveZeroMins(terms);
  FindOwnMins(terms);
  FindHeirs(terms);
  // 3. Create accounts and sum up each level, still without use. Ledger adds the pods afterwards.
  for (Terms& each : terms) {
    accounts_.push_back({std::make_shared<const Terms>(std::move(each)), {}, {}});
  }
  for (size_t i = 0; i < accounts_.size(); ++i) {
    const std::optional<size_t> parent = accounts_[i].terms->parent;
    for (const auto& [resource, min] : accounts_[i].terms->min.entries()) {
      Level& level = parent ? accounts_[*parent].children : roots_;
      auto at = std::ranges::lower_bound(level, resource, {}, &Level::value_type::first);
      if (at == level.end() || at->first != resource) at = level.insert(at, {resource, {}});
      at->second.Add(PartOf(i, resource, 0), 1);
    }
  }
}

// Drops entries of min that are 0 and have no level to borrow on: the parent does not name the
// resource, but an ancestor does. Such an entry guarantees nothing, like a missing one, but would
// keep pods from using the ancestor's min.
void Balance::RemoveZeroMins(std::vector<Terms>& terms) {
  const auto names_above = [&](std::optional<size_t> at, ResourceId resource) {
    while (at && !terms[*at].min.Named(resource)) at = terms[*at].parent;
    return at.has_value();
  };
  for (bool again = true; std::exchange(again, false);) {
    for (Terms& each : terms) {
      if (!each.parent) continue;
      Amounts kept;
      for (const auto& [resource, min] : each.min.entries()) {
        const bool says_nothing = min == 0 && !terms[*each.parent].min.Named(resource) &&
                                  names_above(each.parent, resource);
        if (!says_nothing) kept.Set(resource, min);
      }
      again |= kept != each.min;
      each.min = std::move(kept);
    }
  }
}

// Children's min is deducted from the parent's own. Children in force nowhere guarantee nothing and
// are not deducted.
void Balance::FindOwnMins(std::vector<Terms>& terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].namespaces.empty()) continue;
    for (std::optional<size_t> at = i; at; at = terms[*at].parent) terms[*at].in_force = true;
  }
  for (const Terms& each : terms) {
    if (!each.parent || !each.in_force) continue;
    Amounts& rest = terms[*each.parent].own_min;
    for (const auto& [resource, min] : each.min.entries()) {
      if (const auto above = rest.Named(resource)) rest.Set(resource, Positive(*above - min));
    }
  }
}

void Balance::FindHeirs(std::vector<Terms>& terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].namespaces.empty()) continue;
    for (std::optional<size_t> at = terms[i].parent; at; at = terms[*at].parent) {
      bool inherits = false;
      for (const auto& [resource, min] : terms[*at].min.entries()) {
        if (terms[i].min.Named(resource)) continue;
        inherits |= terms[i].inherited.emplace(resource, *at).second;
      }
      if (inherits) terms[*at].heirs.push_back(i);
    }
  }
}

// Ignores parents that do not exist or that are below their own child.
void Balance::FindParents(std::vector<Terms>& terms) const {
  std::map<std::string, size_t, std::less<>> by_key;
  for (size_t i = 0; i < terms.size(); ++i) by_key.emplace(terms[i].quota->Key(), i);
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::string& parent = terms[i].quota->parent;
    if (parent.empty()) continue;
    const auto found = by_key.find(parent);
    if (found == by_key.end()) {
      terms[i].problems.push_back(fmt::format("its parent {} does not exist", parent));
      continue;
    }
    std::optional<size_t> above = found->second;
    while (above && *above != i) above = terms[*above].parent;
    if (above) {
      terms[i].problems.push_back(fmt::format("its parent {} is below it", parent));
    } else {
      terms[i].parent = found->second;
    }
  }
}

std::optional<size_t> Balance::AccountOf(std::string_view ns) const {
  const auto found = by_namespace_.find(std::string(ns));
  return found == by_namespace_.end() ? std::nullopt : std::optional(found->second);
}

const Balance::Level& Balance::LevelBelow(std::optional<size_t> parent) const {
  return parent ? accounts_[*parent].children : roots_;
}

Balance::SharedCapacity Balance::PartOf(size_t account, ResourceId resource, Amount used) const {
  const Terms& terms = *accounts_[account].terms;
  const std::optional<Amount> min = terms.min.Named(resource);
  if (!min || !terms.in_force) return {};
  const Amount idle = Positive(*min - used);
  return {*min, *min * terms.quota->weight, used,
          std::min(idle, terms.lending_limit.Named(resource).value_or(idle)),
          Positive(used - *min)};
}

Balance::SharedCapacity Balance::RestOf(size_t parent, ResourceId resource, Amount used) const {
  const std::optional<Amount> min = accounts_[parent].terms->min.Named(resource);
  if (!min) return {};
  const Level& level = accounts_[parent].children;
  const auto at = std::ranges::lower_bound(level, resource, {}, &Level::value_type::first);
  const SharedCapacity children =
      at == level.end() || at->first != resource ? SharedCapacity() : at->second;
  const Amount rest = Positive(*min - children.min), own = used - children.used;
  return {rest, rest, own, Positive(rest - own), Positive(own - rest)};
}

Balance::SharedCapacity Balance::PartOf(Member member, ResourceId resource, Amount asked) const {
  const Amount used = accounts_[member.account].used.Get(resource) + asked;
  return member.own ? RestOf(member.account, resource, used)
                    : PartOf(member.account, resource, used);
}

std::optional<size_t> Balance::Above(Member member) const {
  return member.own ? std::optional(member.account) : accounts_[member.account].terms->parent;
}

std::vector<Member> Balance::PathOf(size_t account) const {
  std::vector<Member> path;
  if (!accounts_[account].children.empty()) path.push_back({account, true});
  for (std::optional<size_t> at = account; at; at = accounts_[*at].terms->parent) {
    path.push_back({*at});
  }
  return path;
}

std::vector<Member> Balance::PathOf(size_t account, ResourceId resource) const {
  std::optional<size_t> at = account;
  while (at && !accounts_[*at].terms->min.Named(resource)) at = accounts_[*at].terms->parent;
  if (!at) return {};
  std::vector<Member> path = PathOf(*at);
  if (*at != account && !path.front().own) path.insert(path.begin(), {*at, true});
  return path;
}

Balance::SharedCapacity Balance::PoolBelow(std::optional<size_t> parent,
                                           ResourceId resource) const {
  const Level& level = LevelBelow(parent);
  const auto at = std::ranges::lower_bound(level, resource, {}, &Level::value_type::first);
  SharedCapacity pool = at == level.end() || at->first != resource ? SharedCapacity() : at->second;
  if (parent) pool.Add(RestOf(*parent, resource, accounts_[*parent].used.Get(resource)), 1);
  return pool;
}

void Balance::Count(size_t account, ResourceId resource, Amount amount) {
  const std::optional<size_t> parent = accounts_[account].terms->parent;
  Level& level = parent ? accounts_[*parent].children : roots_;
  const auto at = std::ranges::lower_bound(level, resource, {}, &Level::value_type::first);
  const Amount before = accounts_[account].used.Get(resource);
  if (accounts_[account].terms->min.Named(resource)) {
    at->second.Add(PartOf(account, resource, before), -1);
    at->second.Add(PartOf(account, resource, before + amount), 1);
  }
}

void Balance::Add(size_t account, const Amounts& charge, int sign) {
  for (std::optional<size_t> at = account; at; at = accounts_[*at].terms->parent) {
    for (const auto& [resource, amount] : charge.entries()) Count(*at, resource, sign * amount);
    accounts_[*at].used.Add(charge, sign);
  }
}

Amount Balance::BorrowedWith(size_t account, ResourceId resource, Amount asked) const {
  return PartOf(Member{account}, resource, asked).borrowed;
}

std::optional<Refusal> Balance::OverLimit(size_t account, ResourceId resource, Amount asked) const {
  const Terms& terms = *accounts_[account].terms;
  const Amount used = accounts_[account].used.Get(resource);
  if (const auto max = terms.max.Named(resource); max && used + asked > *max) {
    return Refusal{Refusal::Kind::kMax, terms.quota, resource, asked, used, *max, used};
  }
  const auto limit = terms.borrowing_limit.Named(resource);
  const Amount borrowed = BorrowedWith(account, resource, asked);
  if (limit && borrowed > *limit) {
    return Refusal{
        Refusal::Kind::kBorrowingLimit, terms.quota, resource, asked, borrowed, *limit, used};
  }
  return std::nullopt;
}

std::optional<Refusal> Balance::NothingIdle(Member member, ResourceId resource,
                                            Amount asked) const {
  const std::optional<size_t> parent = Above(member);
  SharedCapacity pool = PoolBelow(parent, resource);
  pool.Add(PartOf(member, resource), -1);
  pool.Add(PartOf(member, resource, asked), 1);
  const Amount from_above = parent ? BorrowedWith(*parent, resource, asked) : 0;
  if (pool.borrowed <= pool.lendable + from_above) return std::nullopt;
  return Refusal{Refusal::Kind::kNothingIdle,
                 accounts_[member.account].terms->quota,
                 resource,
                 asked,
                 pool.borrowed,
                 pool.lendable + from_above,
                 std::max(PoolBelow(parent, resource).used, PoolBelow({}, resource).used)};
}

std::optional<Refusal> Balance::WhyNotAt(Member member, ResourceId resource, Amount asked,
                                         const Balance& limited) const {
  if (!member.own) {
    if (auto refusal = limited.OverLimit(member.account, resource, asked)) return refusal;
  }
  if (!accounts_[member.account].terms->min.Named(resource)) return std::nullopt;
  return NothingIdle(member, resource, asked);
}

std::optional<Refusal> Balance::WhyNot(size_t account, const Amounts& charge,
                                       const Balance* settled, const Balance* limited) const {
  const Balance& before = settled == nullptr ? *this : *settled;
  const std::vector<Member> path = PathOf(account);
  for (const auto& [resource, asked] : charge.entries()) {
    if (asked <= 0) continue;
    const bool covered = accounts_[account].terms->min.Named(resource) &&
                         PartOf(path.front(), resource, asked).borrowed == 0;
    for (const Member member : path) {
      auto refusal = WhyNotAt(member, resource, asked, limited == nullptr ? *this : *limited);
      if (refusal && !(covered && before.WhyNotAt(member, resource, 0, before))) return refusal;
    }
  }
  return std::nullopt;
}

bool Balance::WithinMin(Member member, const Amounts& charge) const {
  return std::ranges::all_of(charge.entries(), [&](const Amounts::Entry& entry) {
    return PartOf(member, entry.first, entry.second).borrowed == 0;
  });
}

bool Balance::WithinShare(Member member, const Amounts& charge) const {
  return std::ranges::all_of(charge.entries(), [&](const Amounts::Entry& entry) {
    const Amount borrowed = PartOf(member, entry.first, entry.second).borrowed;
    return borrowed == 0 || borrowed <= ShareOf(member, entry.first, entry.second);
  });
}

bool Balance::IsBeyondMin(Member member, ResourceId resource) const {
  return PartOf(member, resource).borrowed > 0;
}

bool Balance::IsBeyondShare(Member member, ResourceId resource) const {
  const Amount borrowed = PartOf(member, resource).borrowed;
  return borrowed > 0 && borrowed > ShareOf(member, resource);
}

bool Balance::IsGuaranteed(size_t account, const Amounts& charge, const Amounts& besides) const {
  const Amounts& min = accounts_[account].terms->min;
  const bool names = std::ranges::any_of(charge.entries(), [&](const Amounts::Entry& entry) {
    return entry.second > 0 && min.Named(entry.first);
  });
  return names && std::ranges::all_of(charge.entries(), [&](const Amounts::Entry& entry) {
           const std::vector<Member> path = PathOf(account, entry.first);
           const Amount asked = entry.second + besides.Get(entry.first);
           return path.empty() || PartOf(path.front(), entry.first, asked).borrowed == 0;
         });
}

Amount Balance::ShareOf(Member member, ResourceId resource, Amount asked) const {
  const std::optional<size_t> parent = Above(member);
  SharedCapacity pool = PoolBelow(parent, resource);
  pool.Add(PartOf(member, resource), -1);
  pool.Add(PartOf(member, resource, asked), 1);
  const Amount weighted = PartOf(member, resource).weighted;
  if (weighted == 0) return 0;
  const Amount from_above = parent ? ShareOf(Member{*parent}, resource, asked) : 0;
  return MultiplyDivide(weighted, pool.lendable + from_above, pool.weighted);
}

Amount Balance::BorrowedBy(size_t account, ResourceId resource) const {
  return BorrowedWith(account, resource, 0);
}

Amount Balance::LentBy(size_t account, ResourceId resource) const {
  const std::optional<size_t> parent = accounts_[account].terms->parent;
  const SharedCapacity pool = PoolBelow(parent, resource);
  if (pool.lendable == 0) return 0;
  const Amount inside = Positive(pool.borrowed - (parent ? BorrowedBy(*parent, resource) : 0));
  const Amount outside = parent ? LentBy(*parent, resource) : 0;
  const Amount lent = std::min(pool.lendable, inside + outside);
  const auto lendable = [&](size_t of) {
    return PartOf(of, resource, accounts_[of].used.Get(resource)).lendable;
  };
  Amount before = 0;
  for (size_t i = 0; i < account; ++i) {
    if (accounts_[i].terms->parent == parent) before += lendable(i);
  }
  return MultiplyDivide(before + lendable(account), lent, pool.lendable) -
         MultiplyDivide(before, lent, pool.lendable);
}

}  // namespace nos::quota
