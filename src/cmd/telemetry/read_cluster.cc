#include "cmd/telemetry/read_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "cluster/node_template.h"
#include "cmd/command.h"
#include "cmd/daemon/scheduler_file.h"
#include "controllers/pool_standing.h"
#include "dra/context.h"
#include "kube/cache.h"
#include "kube/connection.h"
#include "kube/http_transport.h"
#include "reconcile/context_caches.h"

namespace nos::cmd {
namespace {

template <typename T>
Result<std::vector<std::shared_ptr<const T>>> ListAll(kube::Client& client,
                                                      const kube::Resource& resource,
                                                      Status (*read)(JsonSource, T&)) {
  std::vector<std::shared_ptr<const T>> out;
  std::string warnings;
  const auto add = [&](JsonSource item) {
    auto object = std::make_shared<T>();
    if (const Status status = read(item, *object); status.ok()) {
      out.push_back(std::move(object));
    } else {
      warnings += Printable(
          fmt::format("warning: {} {}: {}", resource.kind, kube::KeyOf(*object), status.message()));
      warnings += '\n';
    }
  };
  const auto restart = [&] {
    out.clear();
    warnings.clear();
  };
  NOS_RETURN_IF_ERROR(client.ListEach(resource, "", {}, restart, add).status());
  std::cerr << warnings;
  return out;
}

void WarnOfPool(std::string_view name, std::string_view why) {
  std::cerr << Printable(fmt::format("warning: NodePool {}: {}", name, why)) << "\n";
}

// True if the object is a NodePool that cannot be used for planning. The other pools are still
// used, as on a live cluster.
bool TakeWrongPool(std::string_view version, std::string_view kind, const Json& object,
                   ClusterObjects& to) {
  if (kind != cluster::kNodePool) return false;
  if (version != fmt::format("{}/{}", cluster::kPoolGroup, cluster::kPoolVersion)) return false;
  cluster::NodePool pool;
  const Status wrong = cluster::ReadNodePool(object, pool);
  if (wrong.ok()) return false;
  WarnOfPool(FindString(object, "metadata", "name"), wrong.message());
  auto reported = std::make_shared<cluster::NodePool>();
  if (controllers::ReadPoolToReport(object, *reported).ok())
    to.wrong_pools.push_back(std::move(reported));
  return true;
}

}  // namespace

Result<std::vector<std::shared_ptr<const cluster::Node>>> ListNodes(kube::Client& client) {
  return ListAll<cluster::Node>(client, kube::kNodes, &cluster::ReadNode);
}

Result<std::vector<std::shared_ptr<const cluster::Pod>>> ListPods(kube::Client& client) {
  return ListAll<cluster::Pod>(client, kube::kPods, &cluster::ReadPod);
}

Result<std::vector<std::shared_ptr<const cluster::ElasticQuota>>> ListQuotas(kube::Client& client) {
  using cluster::kQuotaGroup, cluster::kQuotaVersion;
  std::vector<std::shared_ptr<const cluster::ElasticQuota>> all;
  const auto add = [&](std::string_view plural, std::string_view kind, auto read) {
    const kube::Resource resource{std::string(kQuotaGroup), std::string(kQuotaVersion),
                                  std::string(plural), std::string(kind), true};
    auto some = ListAll<cluster::ElasticQuota>(client, resource, read);
    if (some.ok()) all.insert(all.end(), some->begin(), some->end());
    return some.status().code() == Code::kNotFound ? Status::Ok() : some.status();
  };
  NOS_RETURN_IF_ERROR(add("elasticquotas", cluster::kElasticQuota, &cluster::ReadElasticQuota));
  NOS_RETURN_IF_ERROR(
      add("compositeelasticquotas", cluster::kCompositeQuota, &cluster::ReadCompositeElasticQuota));
  return all;
}

Result<std::vector<std::shared_ptr<const dra::ResourceClaim>>> ListClaims(kube::Client& client) {
  auto claims = ListAll<dra::ResourceClaim>(client, kResourceClaims, &dra::ReadResourceClaim);
  if (!claims.ok() && claims.status().code() == Code::kNotFound) {
    return std::vector<std::shared_ptr<const dra::ResourceClaim>>();
  }
  return claims;
}

Result<std::vector<std::shared_ptr<const cluster::NodePool>>> ListPools(kube::Client& client) {
  const kube::Resource resource{
      std::string(cluster::kPoolGroup), std::string(cluster::kPoolVersion),
      std::string(cluster::kNodePools), std::string(cluster::kNodePool), false};
  auto pools = ListAll<cluster::NodePool>(client, resource, &controllers::ReadPoolToReport);
  if (!pools.ok() && pools.status().code() == Code::kNotFound) {
    return std::vector<std::shared_ptr<const cluster::NodePool>>();
  }
  if (pools.ok()) {
    std::ranges::sort(*pools, {}, [](const auto& pool) { return pool->meta.name; });
  }
  return pools;
}

std::vector<std::shared_ptr<const cluster::NodePool>> PoolsIn(const ClusterObjects& objects) {
  std::vector<std::shared_ptr<const cluster::NodePool>> pools;
  if (!objects.context) return pools;
  for (const auto& [name, pool] : objects.context->pools.rows()) pools.push_back(pool);
  return cluster::Described(std::move(pools), objects.nodes, objects.pods);
}

scheduling::PartitionedBy PartitionedFor(const ClusterObjects& objects,
                                         std::string_view scheduler_name) {
  const auto& known = objects.partitioning_profiles;
  return known && !known->contains(scheduler_name) ? scheduling::PartitionedBy::kPartitioner
                                                   : scheduling::PartitionedBy::kScheduler;
}

namespace {

// Best effort: not every user may read Leases.
std::optional<std::set<std::string, std::less<>>> ReadPartitioningProfiles(kube::Client& client) {
  const auto leases = client.List(kube::kLeases, "", {"", "metadata.name=nos-scheduler", ""});
  if (!leases.ok()) return std::nullopt;
  std::optional<std::set<std::string, std::less<>>> profiles;
  for (const Json& lease : leases->items) {
    const Json* names = Find(lease, "metadata", "annotations", kPartitioningProfiles);
    if (names == nullptr || !names->is_string()) continue;
    if (!profiles) profiles.emplace();
    for (const std::string_view name : Split(View(names->get_string()), ',')) {
      if (!name.empty()) profiles->emplace(name);
    }
  }
  return profiles;
}

}  // namespace

Result<ClusterObjects> ReadLiveCluster(const std::string& kubeconfig, const std::string& context) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(kubeconfig, context));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  ClusterObjects objects;
  NOS_ASSIGN(objects.nodes, ListNodes(client));
  NOS_ASSIGN(objects.pods, ListPods(client));
  objects.server_time = transport.ServerTime();
  objects.partitioning_profiles = ReadPartitioningProfiles(client);
  reconcile::ContextCaches caches({});
  caches.Pump(client, SystemClock().Now());
  if (caches.synced()) {
    objects.context = caches.Collect();
    const auto wrong = caches.Problems(cluster::kNodePool);
    for (const auto& [name, why] : wrong) WarnOfPool(name, why);
  } else {
    std::cerr << Printable(
                     fmt::format("note: ignoring volumes, disruption budgets and pod groups: {}",
                                 caches.ReadError().message()))
              << "\n";
  }
  return objects;
}

Result<ClusterObjects> ReadDump(const std::vector<std::string>& files) {
  ClusterObjects all;
  all.is_dump = true;
  cluster::ClusterContext context;
  const auto take_context = [&](std::string_view version, std::string_view kind,
                                const Json& object) -> Result<bool> {
    if (TakeWrongPool(version, kind, object, all)) return true;
    NOS_ASSIGN(bool taken, cluster::AddContext(version, kind, object, context));
    if (!taken) {
      NOS_ASSIGN(taken, dra::AddDevices(version, kind, object, context));
    }
    if (taken) all.context = cluster::ClusterContext();
    return taken;
  };
  std::set<std::string> seen;  // "node n1", "pod a/b"
  const auto first = [&](const std::string& object, const std::string& path) {
    return seen.insert(object).second
               ? Status::Ok()
               : Invalid(path + ": " + object + " occurs twice; give every object once");
  };
  for (const std::string& path : files) {
    NOS_ASSIGN(const std::string text, ReadFileOrStdin(path));
    NOS_ASSIGN(cluster::Objects objects,
               cluster::ReadObjects(text, path == "-" ? "stdin" : path, take_context));
    for (cluster::Node& node : objects.nodes) {
      NOS_RETURN_IF_ERROR(first("node " + node.meta.name, path));
      all.nodes.push_back(std::make_shared<cluster::Node>(std::move(node)));
    }
    for (cluster::Pod& pod : objects.pods) {
      NOS_RETURN_IF_ERROR(first("pod " + pod.Key(), path));
      all.pods.push_back(std::make_shared<cluster::Pod>(std::move(pod)));
    }
  }
  if (all.context) all.context = std::move(context);
  const bool has_pools =
      !all.wrong_pools.empty() || (all.context && !all.context->pools.rows().empty());
  if (all.nodes.empty() && !has_pools) {
    return Invalid("no node in the input; dump one with: kubectl get nodes,pods -A -o yaml");
  }
  return all;
}

}  // namespace nos::cmd
