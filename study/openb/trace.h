// Reads the openb trace files (Alibaba cluster-trace-gpu-v2023): a list of nodes and a list of
// pods.
//
//   sn,cpu_milli,memory_mib,gpu,model
//   openb-node-0000,64000,262144,2,P100
//
//   name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,...
//   openb-pod-0001,6000,12288,1,460,V100M16|V100M32,...
//
// Columns are found by name; gpu_spec is optional, other columns are ignored. Windows line ends, a
// byte order mark and blank lines are accepted. gpu_spec lists the accepted models, separated by
// "|"; empty: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "scheduling/packing/node.h"

namespace nos::study {

struct OpenbTrace {
  std::vector<std::string> models;                 // a model's number is its index
  std::vector<scheduling::packing::Node> nodes;    // sorted by name
  std::vector<scheduling::packing::PodKind> pods;  // sorted by name
};

struct OpenbFile {
  std::string_view name;  // for error messages
  std::string_view text;
};

// Error: kInvalid, "pods.csv:17: num_gpu: ...": a missing column, a number out of range, a
// duplicate name, more than 64 GPU models, a list without GPUs or without GPU pods.
Result<OpenbTrace> ParseOpenb(const OpenbFile& nodes, const OpenbFile& pods);

}  // namespace nos::study
