// Checks whether the API server would accept objects by creating them in a temporary server. One
// thread.
#pragma once

#include <string_view>

#include "kube/client.h"
#include "sim/api_server.h"
#include "sim/world/model/pool_specs.h"

namespace nos::sim {

class DryRun {
 public:
  DryRun() {  // an empty server, so no object conflicts
    (void)DefineQuotas(client_);
    (void)DefinePools(client_);
  }
  // Earlier objects exist: a pod may refer to a PriorityClass created before it. Error: the refusal
  // in the server's words, with object and field.
  Status Create(const kube::Resource& resource, std::string_view ns, const Json& object) {
    return client_.Create(resource, ns, object).status();
  }

 private:
  ManualClock clock_{Time{}};
  ApiServer server_{clock_};
  kube::Client client_{server_};
};

}  // namespace nos::sim
