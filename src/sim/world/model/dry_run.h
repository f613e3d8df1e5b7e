// Whether the API server would take objects, found out by creating them in one that is thrown away.
// One thread.
#pragma once

#include <string_view>

#include "kube/client.h"
#include "sim/api_server.h"
#include "sim/world/model/pool_specs.h"

namespace nos::sim {

class DryRun {
 public:
  DryRun() {  // nothing is there that could be in the way
    (void)DefineQuotas(client_);
    (void)DefinePools(client_);
  }
  // Objects that passed earlier are there: a pod may name the PriorityClass before it. Error: the
  // refusal in the server's words, which name object and field.
  Status Create(const kube::Resource& resource, std::string_view ns, const Json& object) {
    return client_.Create(resource, ns, object).status();
  }

 private:
  ManualClock clock_{Time{}};
  ApiServer server_{clock_};
  kube::Client client_{server_};
};

}  // namespace nos::sim
