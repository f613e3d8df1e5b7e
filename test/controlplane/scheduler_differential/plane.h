// The control plane as the test uses it: makes objects, looks at all there are, and follows by
// watches what becomes of pods and volumes. It also plays the provisioner of class "made" and
// "zonal".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bell.h"
#include "cluster/surroundings.h"
#include "kube/client.h"
#include "kube/http_transport.h"

namespace nos::differential {

// All that both sides decide on.
struct Picture {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  cluster::Surroundings around;
  JsonArray objects;  // the same as the API server shows them
};
// From objects with kind and apiVersion, as Picture::objects has them.
Result<Picture> PictureOf(const JsonArray& objects);

class Plane {
 public:
  // Of the control plane in this folder.
  static Result<std::unique_ptr<Plane>> Connect(const std::string& folder);

  // Returns them as they are stored, when the watches show them. A "status" is written, too.
  Result<std::vector<Json>> Create(const std::vector<Json>& objects);
  Result<Json> Create(const Json& object);
  // Returns when the watch shows it.
  Status Patch(const Json& object, const Json& patch, std::string_view subresource = "");
  // At once, without grace.
  Status Delete(const Json& object);
  // All that Create makes for a cluster.
  Status Clear();
  // What is not watched is as LookAround found it last.
  Result<Picture> Look();
  Status LookAround();

  // Waits until `done`, which may look at what the watches have shown. Error: kDeadline.
  Status Await(const std::function<bool()>& done, const std::string& what);
  // As last shown; null: not yet, or gone.
  const Json* Pod(const std::string& key) const { return pods_.Find(key); }
  // All volumes and claims are what their controller makes of them.
  bool VolumesSettled() const;
  const std::string& server() const { return server_; }

 private:
  struct Watched {
    kube::Resource resource;
    std::unique_ptr<kube::WatchStream> stream = nullptr;
    std::map<std::string, Json> objects = {};
    const Json* Find(const std::string& key) const;
  };

  explicit Plane(kube::ConnectionConfig config);
  Status Follow(Watched& watched);
  Status Take(Watched& watched);
  Status WriteStatus(const std::vector<Json>& objects, std::vector<Json>& created);
  bool Shows(const Json& object) const;
  Status Provision(const Json& claim);

  std::string server_;
  Bell bell_;
  std::unique_ptr<kube::HttpTransport> transport_;
  kube::Client client_;
  Watched pods_, claims_, volumes_;
  JsonArray lasting_;
  std::map<std::string, bool> provisioned_;  // uids of claims
};

}  // namespace nos::differential
