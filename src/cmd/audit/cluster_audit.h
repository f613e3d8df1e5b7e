// Audits a cluster, with or without nos on it: it counts the GPUs and nodes that the pods need if
// every GPU may be shared in every mode, and names the waiting pods that would start.
//
//   const Audit audit = MakeAudit(objects, catalogue, frameworks, out_of_time);
//   std::cout << ToText(audit, 100);
//
// Pods keep their requests and constraints. It moves no pod of a real cluster: the answer says
// what fits, not how to get there without restarts. Pure, except for `out_of_time`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmd/telemetry/read_cluster.h"
#include "codec/json.h"
#include "gpu/catalogue.h"
#include "scheduling/framework_choice.h"

namespace nos::cmd {

// One GPU of the repacked cluster.
struct AuditedGpu {
  int index = 0;
  std::string model, mode;  // "H100-80GB", "MIG"; the mode of an unused GPU is ""
  int slots = 0;
  struct Slice {
    int start = 0, size = 0;
    std::string profile, pod;
  };
  std::vector<Slice> slices;  // those with pods
};

struct AuditedNode {
  std::string name;
  bool labelled = false;  // for nos already
  bool known = true;      // its GPU model is: otherwise its GPUs count as whole ones
  size_t pods_now = 0;    // running pods that request GPUs
  bool may_go = false;    // the pods that run today fit on the other nodes
  std::vector<AuditedGpu> gpus;
};

struct Audit {
  size_t gpus = 0, running = 0, pending = 0;
  size_t gpus_needed = 0;  // that running pods need, together
  size_t misfits = 0;      // running pods that found no place when all were packed anew
  size_t starting = 0;     // pending pods that would start on all nodes, beside the running ones
  std::vector<AuditedNode> nodes;          // by name
  std::vector<std::string> starting_pods;  // keys
  std::vector<std::string> assumptions;    // one sentence each
  bool complete = true;                    // false: time was up before all nodes had been tried
  size_t NodesThatMayGo() const;
};

Audit MakeAudit(const ClusterObjects& objects, const gpu::Catalogue& catalogue,
                const scheduling::FrameworkChoice& frameworks,
                const std::function<bool()>& out_of_time);

// Lines of at most `width` characters.
std::string ToText(const Audit& audit, size_t width);
Json ToJson(const Audit& audit);
// A page that needs nothing from outside, to send to a colleague.
std::string ToHtml(const Audit& audit);

}  // namespace nos::cmd
