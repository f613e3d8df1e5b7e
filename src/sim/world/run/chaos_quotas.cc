#include "sim/world/run/chaos_quotas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "quota/charge.h"
#include "sim/specs.h"
#include "sim/workload.h"

namespace nos::sim {
namespace {

constexpr std::array<std::string_view, 3> kNamespaces = {"default", "team-a", "team-b"};

Json QuotaObject(const PlainQuota& quota) {
  const bool composite = quota.namespaces.size() > 1;
  const auto list = [](const quota::Amounts& amounts) {
    JsonObject json;
    for (const auto& [name, amount] : quota::ListOf(amounts)) json[name] = amount.ToString();
    return json;
  };
  JsonObject spec = {{"min", list(quota.min)}, {"max", list(quota.max)}};
  if (composite) {
    JsonArray namespaces;
    for (const std::string& ns : quota.namespaces) namespaces.emplace_back(ns);
    spec["namespaces"] = std::move(namespaces);
  }
  return JsonObject{
      {"apiVersion", "nos.nebuly.com/v1alpha1"},
      {"kind", composite ? cluster::kCompositeQuota : cluster::kElasticQuota},
      {"metadata", JsonObject{{"name", quota.name}, {"namespace", quota.namespaces.front()}}},
      {"spec", std::move(spec)}};
}

quota::SharedQuota Read(const PlainQuota& plain) {
  auto quota = std::make_shared<cluster::ElasticQuota>();
  const Json object = QuotaObject(plain);
  const bool composite = plain.namespaces.size() > 1;
  const Status read = composite ? cluster::ReadCompositeElasticQuota(object, *quota)
                                : cluster::ReadElasticQuota(object, *quota);
  if (!read.ok()) return nullptr;  // not a pod that the simulation draws
  return quota;
}

quota::Amounts ChargeOf(const cluster::Pod& pod) { return quota::ChargeOf(pod, nullptr, {}); }

}  // namespace

ChaosQuotas::ChaosQuotas(World& world, uint64_t seed, bool always)
    : world_(world), client_(world.api()), random_(seed), any_(random_.Chance(0.5) || always) {}

std::string ChaosQuotas::DrawNamespace() {
  return std::string(any_ ? kNamespaces[random_.Below(kNamespaces.size())] : kNamespaces[0]);
}

PlainQuota ChaosQuotas::Draw(std::string name, std::vector<std::string> namespaces) {
  PlainQuota quota{std::move(name), std::move(namespaces), {}, {}};
  const auto draw = [&](std::string_view resource, int64_t unit, uint64_t most) {
    const cluster::ResourceId id = cluster::InternResource(resource);
    const auto min = unit * static_cast<int64_t>(random_.Below(most));
    if (random_.Chance(0.8)) quota.min.Set(id, min);
    if (random_.Chance(0.5)) {
      quota.max.Set(id, min + unit * static_cast<int64_t>(1 + random_.Below(most)));
    }
  };
  draw("cpu", 1000, 12);
  draw(quota::kGpuMemory, 10, 16);
  return quota;
}

Status ChaosQuotas::Define() {
  NOS_RETURN_IF_ERROR(DefineQuotas(client_));
  for (const std::string_view ns : {kNamespaces[1], kNamespaces[2]}) {
    const Json object = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}};
    NOS_RETURN_IF_ERROR(client_.Create(*WorkloadResource("Namespace"), "", object).status());
  }
  return Status::Ok();
}

Status ChaosQuotas::AddFixed(std::vector<PlainQuota> quotas) {
  NOS_RETURN_IF_ERROR(Define());
  quotas_ = std::move(quotas);
  for (const PlainQuota& quota : quotas_) NOS_RETURN_IF_ERROR(Put(quota));
  UpdateChecker();
  return Status::Ok();
}

Status ChaosQuotas::Add(Duration changes_last) {
  if (!any_) return Status::Ok();
  NOS_RETURN_IF_ERROR(Define());
  // A quota for each namespace, or a composite one for two of them.
  if (random_.Chance(0.3)) {
    quotas_ = {Draw("alone", {"default"}), Draw("both", {"team-a", "team-b"})};
  } else {
    for (const std::string_view ns : kNamespaces) {
      if (random_.Chance(0.8)) quotas_.push_back(Draw("quota", {std::string(ns)}));
    }
  }
  for (const PlainQuota& quota : quotas_) NOS_RETURN_IF_ERROR(Put(quota));
  UpdateChecker();
  for (uint64_t i = random_.Below(3); i > 0; --i) {
    const Duration when = FromSeconds(random_.Uniform() * ToSeconds(changes_last));
    world_.At(world_.Now() + when, [this] { Change(); });
  }
  return Status::Ok();
}

Status ChaosQuotas::Put(const PlainQuota& quota) {
  const Json object = QuotaObject(quota);
  const std::string& ns = quota.namespaces.front();
  const kube::Resource& kind = *WorkloadResource(FindString(object, "kind"));
  NOS_RETURN_IF_ERROR(Remove(quota));
  return client_.Create(kind, ns, object).status();
}

Status ChaosQuotas::Remove(const PlainQuota& quota) {
  const kube::Resource& kind = *WorkloadResource(FindString(QuotaObject(quota), "kind"));
  const Status gone = client_.Delete(kind, quota.namespaces.front(), quota.name);
  return gone.code() == Code::kNotFound ? Status::Ok() : gone;
}

// Changes, removes or restores one quota.
void ChaosQuotas::Change() {
  if (quotas_.empty()) return;
  PlainQuota& quota = quotas_[random_.Below(quotas_.size())];
  Status done = Status::Ok();
  if (random_.Chance(0.3)) {
    done = Remove(quota);
    quotas_.erase(quotas_.begin() + (&quota - quotas_.data()));
  } else {
    quota = Draw(quota.name, quota.namespaces);
    done = Put(quota);
  }
  world_.log().Note("user", "changes a quota: " + done.ToString());
  UpdateChecker();
}

void ChaosQuotas::UpdateChecker() { world_.checks().quotas().SetQuotas(quotas_, world_.Now()); }

quota::Ledger ChaosQuotas::LedgerOf(const Pods& pods) const {
  std::vector<quota::SharedQuota> quotas;
  quotas.reserve(quotas_.size());
  for (const PlainQuota& quota : quotas_) quotas.push_back(Read(quota));
  quota::Ledger ledger;
  ledger.SetQuotas(std::move(quotas));
  for (const auto& pod : pods) {
    if (!pod->node_name.empty() && !pod->Finished()) ledger.SetPod(pod, ChargeOf(*pod));
  }
  return ledger;
}

std::vector<std::string> ChaosQuotas::Describe(const Pods& pods) const {
  std::vector<std::string> lines;
  const quota::Balance balance = LedgerOf(pods).balance();
  for (size_t i = 0; i < balance.size(); ++i) {
    std::string line = "quota " + balance.terms(i).quota->Key();
    for (const auto& [what, amounts] :
         {std::pair("min", &balance.terms(i).min), std::pair("max", &balance.terms(i).max),
          std::pair("used", &balance.used(i))}) {
      line += fmt::format("; {}", what);
      for (const auto& [resource, amount] : amounts->entries()) {
        line +=
            fmt::format(" {}x{}", quota::TextOf(resource, amount), cluster::ResourceName(resource));
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

bool ChaosQuotas::LetsIn(const std::vector<const cluster::Pod*>& together, const Pods& pods) const {
  if (quotas_.empty()) return true;
  quota::Balance balance = LedgerOf(pods).balance();
  return std::ranges::all_of(together, [&](const cluster::Pod* pod) {
    const auto account = balance.AccountOf(pod->meta.ns);
    if (!account) return true;
    const quota::Amounts charge = ChargeOf(*pod);
    if (balance.WhyNot(*account, charge)) return false;
    balance.Add(*account, charge);
    return true;
  });
}

bool ChaosQuotas::IsGuaranteed(const cluster::Pod& pod, const Pods& pods) const {
  const quota::Balance balance = LedgerOf(pods).balance();
  const auto account = balance.AccountOf(pod.meta.ns);
  return account && balance.IsGuaranteed(*account, ChargeOf(pod));
}

ChaosQuotas::Pods ChaosQuotas::MayGoFor(const cluster::Pod& pod, const Pods& pods) const {
  if (quotas_.empty()) return {};
  quota::Ledger ledger = LedgerOf(pods);
  quota::Balance balance = ledger.balance();
  const auto account = balance.AccountOf(pod.meta.ns);
  const quota::Amounts charge = ChargeOf(pod);
  if (!account || !balance.IsGuaranteed(*account, charge)) return {};
  Pods may_go;
  for (const auto& other : pods) {
    const quota::Amounts* held = ledger.ChargeOf(other->Key());
    const auto its = balance.AccountOf(other->meta.ns);
    if (held == nullptr || its == account || !its || !ledger.IsOverQuota(other->Key())) continue;
    // The pod holds a requested resource, and its quota is over its min in it.
    const bool excess = std::ranges::any_of(charge.entries(), [&](const auto& entry) {
      const auto min = balance.terms(*its).min.Named(entry.first);
      return min && held->Get(entry.first) > 0 && balance.used(*its).Get(entry.first) > *min;
    });
    if (!excess) continue;
    may_go.push_back(other);
    balance.Add(*its, *held, -1);
  }
  return may_go;
}

}  // namespace nos::sim
