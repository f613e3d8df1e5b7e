// The switch between device plugin and ResourceClaims, as the agent's loop sees it.
#pragma once

#include <string>

namespace nos::agent {

// Thread-safe.
class ClaimInterface {
 public:
  virtual ~ClaimInterface() = default;
  // True: announce the GPUs to schedulers and serve claims, because no pod uses a device of the
  // device plugin. False: announce nothing; claims that pods have are served until they end.
  // `node_uid`: of the Node object.
  virtual void Use(bool use, const std::string& node_uid) = 0;
  // True while nothing is announced and no claim has a device of this node: the GPUs may be offered
  // otherwise.
  virtual bool Released() const = 0;
};

}  // namespace nos::agent
