#include "study/openb/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace nos::study {
namespace {

using scheduling::packing::kAnyModel;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "b,64000,262144,2,P100\n"
    "a,96000,393216,1,T4\n";
constexpr std::string_view kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p1,6000,12288,1,460,T4|T4|H100\n"
    "p0,1000,1024,0,0,\n"
    "p2,1000,1024,2,1000,\n";

Result<OpenbTrace> Parse(std::string_view nodes, std::string_view pods) {
  return ParseOpenb({"nodes.csv", nodes}, {"pods.csv", pods});
}

std::string NodesError(std::string_view text) { return Parse(text, kPods).status().message(); }
std::string PodsError(std::string_view rows) {
  const std::string text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + std::string(rows);
  return Parse(kNodes, text).status().message();
}

TEST(OpenbTrace, ReadsNodesAndPodsSortedByName) {
  const auto trace = Parse(kNodes, kPods);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_THAT(trace->models, ElementsAre("P100", "T4"));
  ASSERT_EQ(trace->nodes.size(), 2U);
  EXPECT_EQ(trace->nodes[0].cpu_milli, 96000);
  EXPECT_EQ(trace->nodes[0].model, 1);
  EXPECT_THAT(trace->nodes[1].gpu_milli, ElementsAre(1000, 1000));
  ASSERT_EQ(trace->pods.size(), 3U);
  EXPECT_EQ(trace->pods[0].gpus, 0);
  EXPECT_EQ(trace->pods[1].milli, 460);
  EXPECT_EQ(trace->pods[1].models, 0b10U) << "models without nodes are left out";
  EXPECT_EQ(trace->pods[2].gpus, 2);
  EXPECT_EQ(trace->pods[2].models, kAnyModel);
}

TEST(OpenbTrace, AcceptsOtherLineEndsOrdersAndColumns) {
  const auto trace =
      Parse("\xEF\xBB\xBFgpu,model,extra,sn,memory_mib,cpu_milli\r\n1,A10,x,n,5,6\r\n\r\n",
            "gpu_milli,num_gpu,name,memory_mib,cpu_milli\r\n1000,1,p,2,3");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->nodes[0].memory_mib, 5);
  EXPECT_EQ(trace->pods[0].cpu_milli, 3);
}

TEST(OpenbTrace, NodesWithoutGpuNeedNoModel) {
  const auto trace = Parse("sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\nb,1,1,1,T4\n", kPods);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_THAT(trace->models, ElementsAre("T4"));
}

TEST(OpenbTrace, LocatesErrorsInNodeList) {
  EXPECT_EQ(NodesError(""), "nodes.csv:1: the header line is missing");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu,model\n"),
            "nodes.csv: no rows below the header");
  EXPECT_EQ(NodesError("sn,cpu_milli,gpu,model\na,1,1,T4\n"),
            "nodes.csv:1: column 'memory_mib' is missing; the header has: sn,cpu_milli,gpu,model");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu,model\n\na,1,1,1\n"),
            "nodes.csv:3: 4 fields, but the header names 5");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,\n"),
            "nodes.csv:2: model: is empty");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu,model\na,-1,1,1,T4\n"),
            "nodes.csv:2: cpu_milli: '-1' is not a whole number from 0 to 100000000");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu,model\na,1,1,65,T4\n"),
            "nodes.csv:2: gpu: '65' is not a whole number from 0 to 64");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,T4\na,1,1,1,T4\n"),
            "nodes.csv: node 'a' is listed twice");
  EXPECT_EQ(NodesError("sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n"),
            "nodes.csv: no node has a GPU");
}

TEST(OpenbTrace, AcceptsAtMost64Models) {
  std::string text = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int i = 0; i <= 64; ++i) {
    text += "n" + std::to_string(i) + ",1,1,1,M" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(NodesError(text), "nodes.csv:66: model: more than 64 different GPU models");
}

TEST(OpenbTrace, LocatesErrorsInPodList) {
  EXPECT_EQ(PodsError("p,1,1,1,1001\n"),
            "pods.csv:2: gpu_milli: '1001' is not a whole number from 1 to 1000");
  EXPECT_EQ(PodsError("p,1,1,1,0\n"),
            "pods.csv:2: gpu_milli: '0' is not a whole number from 1 to 1000");
  EXPECT_EQ(PodsError("p,1,1,2,500\n"),
            "pods.csv:2: gpu_milli: '500' is not a whole number from 1000 to 1000");
  EXPECT_EQ(PodsError("p,1,1,0,500\n"),
            "pods.csv:2: gpu_milli: '500' is not a whole number from 0 to 0");
  EXPECT_EQ(PodsError("p,1e3,1,1,1\n"),
            "pods.csv:2: cpu_milli: '1e3' is not a whole number from 0 to 100000000");
  EXPECT_EQ(
      PodsError("p,99999999999999999999,1,1,1\n"),
      "pods.csv:2: cpu_milli: '99999999999999999999' is not a whole number from 0 to 100000000");
  EXPECT_EQ(PodsError("p,1,1,0,0\n"), "pods.csv: no pod asks for a GPU");
  EXPECT_EQ(PodsError("p,1,1,1,1\nq,1,1,1,1\np,1,1,1,1\n"), "pods.csv: pod 'p' is listed twice");
}

// For every input the result is a trace, or an error that names a file.
TEST(OpenbTrace, HandlesDamagedFiles) {
  constexpr std::string_view kDamage{",\n\r|-9x\"\0\xFF", 10};
  Random random(1);
  const auto damaged = [&](std::string_view text) {
    std::string copy(text);
    for (int i = 0; i < 3; ++i)
      copy[random.Below(copy.size())] = kDamage[random.Below(kDamage.size())];
    return copy.substr(0, 1 + random.Below(2 * copy.size()));
  };
  for (int i = 0; i < 2000; ++i) {
    const auto trace = Parse(damaged(kNodes), damaged(kPods));
    if (trace.ok()) continue;
    EXPECT_EQ(trace.status().code(), Code::kInvalid);
    EXPECT_THAT(trace.status().message(), HasSubstr(".csv:"));
  }
}

}  // namespace
}  // namespace nos::study
