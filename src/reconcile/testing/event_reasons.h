// The fields of Events, for tests that do not depend on sentences.
#pragma once

#include <string>
#include <vector>

#include "kube/cache.h"
#include "kube/testing/fake_api.h"

namespace nos::reconcile::testing {

// "Reason namespace/name" of every Event, with the object that it is about.
inline std::vector<std::string> EventReasons(const kube::FakeApi& api) {
  std::vector<std::string> all;
  for (const Json& event : api.All("events")) {
    const Json& object = event.at("involvedObject");
    all.push_back(std::string(FindString(event, "reason")) + " " +
                  kube::KeyOf(FindString(object, "namespace"), FindString(object, "name")));
  }
  return all;
}

}  // namespace nos::reconcile::testing
