// Access to the control plane for this test: creates objects, takes snapshots, and watches pods,
// volumes and claims. It also plays the provisioner of the classes "made" and "zonal".
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/wake_signal.h"
#include "cluster/context.h"
#include "kube/client.h"
#include "kube/http_transport.h"
#include "scheduler_differential/generate.h"

namespace nos::differential {

// The input of both schedulers.
struct Picture {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  cluster::ClusterContext context;
  JsonArray objects;  // the same, as returned by the API server
};
// REQUIRES: objects have kind and apiVersion, as in Picture::objects.
Result<Picture> PictureOf(const JsonArray& objects);

// `lasts`: kept for all clusters.
struct KnownKind {
  kube::Resource resource;
  bool lasts = false;
};

class Plane {
 public:
  // Connects to the control plane in this directory.
  static Result<std::unique_ptr<Plane>> Connect(const std::string& folder,
                                                const DeviceApi& devices);

  // Returns the stored objects after the watches have shown them. Also writes "status".
  Result<std::vector<Json>> Create(const std::vector<Json>& objects);
  Result<Json> Create(const Json& object);
  // Returns after the watch has shown it.
  Status Patch(const Json& object, const Json& patch, std::string_view subresource = "");
  // Without a grace period.
  Status Delete(const Json& object);
  // Deletes everything that Create made for a cluster.
  Status Clear();
  // Objects without a watch are those of the last ReadContext.
  Result<Picture> Look();
  Status ReadContext();

  // Waits until `done`, which may inspect the watched objects. Error: kDeadline.
  Status Await(const std::function<bool()>& done, const std::string& what,
               Duration patience = std::chrono::seconds(10));
  // The pod as last watched; null: not created yet, or deleted.
  const Json* Pod(const std::string& key) const { return pods_.Find(key); }
  // The same for a ResourceClaim.
  const Json* DeviceClaim(const std::string& key) const { return device_claims_.Find(key); }
  const std::map<std::string, Json>& DeviceClaims() const { return device_claims_.objects; }
  // `call` receives each version of each pod.
  void OnPod(std::function<void(const std::string& key, const Json&)> call) {
    on_pod_ = std::move(call);
  }
  // True after the volume controller has processed all volumes and claims.
  bool VolumesSettled() const;
  const std::string& server() const { return server_; }

 private:
  struct Watched {
    kube::Resource resource;
    std::unique_ptr<kube::WatchStream> stream = nullptr;
    std::map<std::string, Json> objects = {};
    const Json* Find(const std::string& key) const;
  };

  Plane(kube::ConnectionConfig config, const DeviceApi& devices);
  const kube::Resource& ResourceOf(const Json& object) const;
  Status Follow(Watched& watched);
  Status Take(Watched& watched);
  Status WriteStatus(const std::vector<Json>& objects, std::vector<Json>& created);
  bool Shows(const Json& object) const;
  Status Provision(const Json& claim);

  std::string server_;
  WakeSignal bell_;
  std::unique_ptr<kube::HttpTransport> transport_;
  kube::Client client_;
  const std::vector<KnownKind> kinds_;  // in the order of creation
  Watched pods_, claims_, volumes_, device_claims_;
  std::vector<Watched*> watched_;
  std::function<void(const std::string&, const Json&)> on_pod_;
  JsonArray lasting_;
  std::map<std::string, bool> provisioned_;  // uids of provisioned claims
};

}  // namespace nos::differential
