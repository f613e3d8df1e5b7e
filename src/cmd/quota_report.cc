#include "cmd/quota_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "quota/ledger.h"

namespace nos::cmd {
namespace {

using cluster::ResourceId;
using quota::Amount;
using quota::Balance;

constexpr size_t kVictimsShown = 3;

struct Part {
  size_t account;
  Amount amount;
};

std::vector<size_t> BesideOf(const Balance& balance, size_t account) {
  std::vector<size_t> beside;
  for (size_t other = 0; other < balance.size(); ++other) {
    if (other == account || balance.terms(other).parent != balance.terms(account).parent) continue;
    beside.push_back(other);
  }
  return beside;
}

// `whole` divided among those of the same level in proportion to what `weight` says of them; parts
// add up to it. Those that get nothing are left out.
template <typename Weight>
std::vector<Part> Divide(const Balance& balance, size_t account, Amount whole, Weight weight) {
  const std::vector<size_t> beside = BesideOf(balance, account);
  Amount sum = 0, before = 0, given = 0;
  for (const size_t other : beside) sum += weight(other);
  std::vector<Part> parts;
  for (const size_t other : beside) {
    before += weight(other);
    const Amount upto = sum == 0 ? 0
                                 : static_cast<Amount>(static_cast<long double>(whole) *
                                                       static_cast<long double>(before) /
                                                       static_cast<long double>(sum));
    if (upto > given) parts.push_back({other, upto - given});
    given = std::max(given, upto);
  }
  return parts;
}

std::vector<Part> BorrowedFrom(const Balance& balance, size_t account, ResourceId resource) {
  return Divide(balance, account, balance.BorrowedBy(account, resource),
                [&](size_t other) { return balance.LentBy(other, resource); });
}

std::vector<Part> LentTo(const Balance& balance, size_t account, ResourceId resource) {
  return Divide(balance, account, balance.LentBy(account, resource),
                [&](size_t other) { return balance.BorrowedBy(other, resource); });
}

std::string NameOf(const Balance& balance, size_t account) {
  return balance.terms(account).quota->Key();
}

// "6 (b/eq 4, c/eq 2)"
std::string PartsText(const Balance& balance, ResourceId resource, const std::vector<Part>& parts) {
  if (parts.empty()) return "-";
  Amount sum = 0;
  std::string who;
  for (const Part& part : parts) {
    sum += part.amount;
    who += fmt::format("{}{} {}", who.empty() ? "" : ", ", NameOf(balance, part.account),
                       quota::TextOf(resource, part.amount));
  }
  return fmt::format("{} ({})", quota::TextOf(resource, sum), who);
}

Json PartsJson(const Balance& balance, ResourceId resource, const std::vector<Part>& parts) {
  JsonObject json;
  for (const Part& part : parts) {
    json[NameOf(balance, part.account)] = quota::QuantityOf(resource, part.amount).ToString();
  }
  return json;
}

// Beyond min they have a share of what is idle.
Amount GuaranteedOf(const Balance& balance, size_t account, ResourceId resource) {
  return balance.terms(account).min.Get(resource) + balance.ShareOf(account, resource);
}

std::vector<ResourceId> NamedBy(const quota::Terms& terms) {
  std::vector<ResourceId> named;
  for (const auto* amounts : {&terms.min, &terms.max}) {
    for (const auto& [id, amount] : amounts->entries()) named.push_back(id);
  }
  std::ranges::sort(named, {}, [](ResourceId id) { return cluster::ResourceName(id); });
  const auto same = std::ranges::unique(named);
  named.erase(same.begin(), same.end());
  return named;
}

// The next to go is the first.
std::vector<std::string> VictimsOf(quota::Ledger& ledger, size_t account) {
  const quota::Ledger::Standing& standing = ledger.StandingOf(account);
  std::vector<std::string> victims;
  for (size_t i = standing.pods.size(); i > standing.in_quota; --i) {
    victims.push_back(standing.pods[i - 1]->Key());
  }
  return victims;
}

std::string VictimsText(const std::vector<std::string>& victims) {
  if (victims.empty()) return "-";
  std::string text;
  for (size_t i = 0; i < std::min(victims.size(), kVictimsShown); ++i) {
    text += (i > 0 ? ", " : "") + victims[i];
  }
  if (victims.size() <= kVictimsShown) return text;
  return fmt::format("{} and {} more", text, victims.size() - kVictimsShown);
}

quota::Ledger LedgerOf(const LiveCluster& live) {
  quota::Ledger ledger;
  ledger.SetQuotas(live.quotas);
  for (const auto& pod : live.pods) {
    if (pod->node_name.empty() || pod->Finished()) continue;
    const cluster::NodeInfo* node = live.snapshot.Find(pod->node_name);
    ledger.SetPod(
        pod, quota::ChargeOf(*pod, node == nullptr ? nullptr : node->node.get(), live.charges));
  }
  return ledger;
}

void AddQuota(quota::Ledger& ledger, size_t account, Printout& out) {
  const Balance& balance = ledger.balance();
  const quota::Terms& terms = balance.terms(account);
  const std::string name = NameOf(balance, account);
  const std::vector<std::string> victims = VictimsOf(ledger, account);
  JsonObject resources;
  for (const ResourceId id : NamedBy(terms)) {
    const auto text = [&](Amount amount) { return quota::TextOf(id, amount); };
    const auto named = [&](const quota::Amounts& amounts) {
      const auto amount = amounts.Named(id);
      return amount ? text(*amount) : "-";
    };
    const auto from = BorrowedFrom(balance, account, id), to = LentTo(balance, account, id);
    out.table.AddRow({name, cluster::ResourceName(id), named(terms.min), named(terms.max),
                      text(balance.used(account).Get(id)), text(GuaranteedOf(balance, account, id)),
                      PartsText(balance, id, from), PartsText(balance, id, to),
                      VictimsText(victims)});
    const auto quantity = [&](Amount amount) {
      return Json(quota::QuantityOf(id, amount).ToString());
    };
    const auto limit = [&](const quota::Amounts& amounts) {
      const auto amount = amounts.Named(id);
      return amount ? quantity(*amount) : Json();
    };
    resources[cluster::ResourceName(id)] =
        JsonObject{{"min", limit(terms.min)},
                   {"max", limit(terms.max)},
                   {"used", quantity(balance.used(account).Get(id))},
                   {"guaranteed", quantity(GuaranteedOf(balance, account, id))},
                   {"borrowedFrom", PartsJson(balance, id, from)},
                   {"lentTo", PartsJson(balance, id, to)}};
  }
  JsonArray namespaces, next, problems;
  for (const std::string& ns : terms.namespaces) namespaces.emplace_back(ns);
  for (const std::string& victim : victims) next.emplace_back(victim);
  for (const std::string& problem : terms.problems) {
    problems.emplace_back(problem);
    out.warnings.push_back(fmt::format("{}: {}", name, problem));
  }
  out.json.push_back(JsonObject{
      {"kind", terms.quota->composite ? cluster::kCompositeQuota : cluster::kElasticQuota},
      {"namespace", terms.quota->meta.ns},
      {"name", terms.quota->meta.name},
      {"namespaces", std::move(namespaces)},
      {"resources", std::move(resources)},
      {"overQuota", std::move(next)},
      {"problems", std::move(problems)}});
}

}  // namespace

Printout ReportQuotas(const LiveCluster& live, Time) {
  Printout out{TextTable({"QUOTA", "RESOURCE", "MIN", "MAX", "USED", "GUARANTEED", "BORROWED FROM",
                          "LENT TO", "NEXT TO GO"})};
  quota::Ledger ledger = LedgerOf(live);
  for (size_t account = 0; account < ledger.balance().size(); ++account) {
    AddQuota(ledger, account, out);
  }
  return out;
}

}  // namespace nos::cmd
