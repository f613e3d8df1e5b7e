#include "controllers/slice_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "codec/base64.h"
#include "codec/json.h"
#include "codec/yaml.h"

namespace nos::controllers {
namespace {

using ::testing::HasSubstr;

class SliceAdmissionTest : public ::testing::Test {
 protected:
  SliceAdmissionTest() {
    AddNode("mig", "mig", "NVIDIA-A100-SXM4-40GB", {});
    Set();
  }

  static Json Parsed(const std::string& yaml) { return ParseYaml(yaml)->front(); }
  void AddNode(const std::string& name, const std::string& mode, const std::string& product,
               const std::map<std::string, std::string>& annotations) {
    Json node =
        Parsed("metadata: {name: " + name + ", labels: {nos.nebuly.com/gpu-partitioning: " + mode +
               ", nvidia.com/gpu.count: '1', nvidia.com/gpu.product: " + product +
               "}}\nstatus: {allocatable: {cpu: 64, memory: 256Gi, pods: 110}}");
    for (const auto& [key, value] : annotations) {
      MakeObject(node, "metadata", "annotations")["nos.nebuly.com/" + key] = value;
    }
    nodes_.push_back(std::make_shared<cluster::Node>(cluster::DecodeNode(node).value()));
  }
  void AddPod(const Json& pod) {
    pods_.push_back(std::make_shared<cluster::Pod>(cluster::DecodePod(pod).value()));
  }
  void Set() {
    cluster_ = {std::make_shared<const std::vector<std::shared_ptr<const cluster::Node>>>(nodes_),
                std::make_shared<const std::vector<std::shared_ptr<const cluster::Pod>>>(pods_)};
  }
  static Json Pod(const std::string& annotations, const std::string& containers = "[{name: a}]") {
    return Parsed("apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-, annotations: {" +
                  annotations + "}}\nspec: {hostIPC: true, containers: " + containers + "}");
  }
  Json Ask(const Json& pod, const std::string& operation = "CREATE",
           const std::string& kind = "Pod", bool dry_run = false) {
    return AskIn(admission_, pod, operation, kind, dry_run);
  }
  Json AskFrom(const std::string& ns, const Json& pod) {
    return AskIn(admission_, pod, "CREATE", "Pod", false, ns);
  }
  static std::string ReviewOf(const std::string& ns, const Json& pod, const std::string& uid,
                              const std::string& operation = "CREATE",
                              const std::string& kind = "Pod", bool dry_run = false) {
    return WriteJson(JsonObject{{"apiVersion", "admission.k8s.io/v1"},
                                {"kind", "AdmissionReview"},
                                {"request",
                                 {{"uid", uid},
                                  {"kind", {{"group", ""}, {"kind", kind}}},
                                  {"namespace", ns},
                                  {"operation", operation},
                                  {"dryRun", dry_run},
                                  {"object", pod}}}});
  }
  Json AskIn(SliceAdmission& admission, const Json& pod, const std::string& operation = "CREATE",
             const std::string& kind = "Pod", bool dry_run = false, const std::string& ns = "ml") {
    const auto answer =
        admission.Review(ReviewOf(ns, pod, std::to_string(++asked_), operation, kind, dry_run));
    EXPECT_EQ(answer.code, 200) << answer.body;
    return *Find(*ParseJson(answer.body), "response");
  }
  static std::string Refusal(const Json& response) {
    return std::string(FindString(response, "status", "message"));
  }
  static Json PatchOf(const Json& response) {
    const auto text = DecodeBase64(FindString(response, "patch"));
    return text.ok() && !text->empty() ? ParseJson(*text).value() : Json(JsonArray());
  }
  // The resource set by the patch. Empty: none.
  static std::string Chosen(const Json& response) {
    const Json patch = PatchOf(response);
    if (patch.get_array().empty()) return "";
    return std::string(FindString(patch.get_array().at(1), "value"));
  }

  ManualClock clock_{Time(std::chrono::seconds(1'000'000))};
  std::vector<std::shared_ptr<const cluster::Node>> nodes_;
  std::vector<std::shared_ptr<const cluster::Pod>> pods_;
  SliceAdmission::Cluster cluster_;
  SliceAdmission admission_{gpu::Catalogue::Builtin(), clock_, [this] { return cluster_; }};
  int asked_ = 0;
};

TEST_F(SliceAdmissionTest, SetsResourceForRequirements) {
  const Json response = Ask(Pod("nos.nebuly.com/need-memory: 9Gi",
                                "[{name: a}, {name: b, resources: {limits: {cpu: 2}, claims: "
                                "[{name: x}]}}]"));
  EXPECT_EQ(FindString(response, "patchType"), "JSONPatch");
  const Json patch = PatchOf(response);
  EXPECT_EQ(WriteJson(patch.get_array().at(0)),
            R"({"op":"add","path":"/spec/containers/0/resources","value":{"limits":)"
            R"({"nvidia.com/mig-1g.10gb":"1"},"requests":{"nvidia.com/mig-1g.10gb":"1"}}})");
  EXPECT_EQ(WriteJson(patch.get_array().at(1)),
            R"({"op":"add","path":"/metadata/annotations/nos.nebuly.com~1chosen-slice",)"
            R"("value":"nvidia.com/mig-1g.10gb"})");
  EXPECT_EQ(FindString(patch.get_array().at(2), "value"),
            "the cheapest that meets the need and has room now (mig)");
}

TEST_F(SliceAdmissionTest, KeepsOtherResourcesOfContainer) {
  const Json response =
      Ask(Pod("nos.nebuly.com/need-memory: 9Gi, nos.nebuly.com/need-container: b",
              "[{name: a}, {name: b, resources: {limits: {cpu: 2}, claims: [{name: x}]}}]"));
  const Json first = PatchOf(response).get_array().at(0);
  EXPECT_EQ(FindString(first, "path"), "/spec/containers/1/resources");
  EXPECT_EQ(WriteJson(*Find(first, "value", "limits")),
            R"({"cpu":2,"nvidia.com/mig-1g.10gb":"1"})");
  EXPECT_NE(Find(first, "value", "claims"), nullptr);
}

TEST_F(SliceAdmissionTest, CountsPodsAdmittedJustBefore) {
  AddNode("mps", "mps", "any", {{"status-model-0", "MPS-39GB"}, {"status-layout-0", ""}});
  Set();
  const Json need = Pod("nos.nebuly.com/need-memory: 18Gi");
  EXPECT_EQ(Chosen(Ask(need)), "nvidia.com/gpu-18gb");
  EXPECT_EQ(Chosen(Ask(need)), "nvidia.com/gpu-18gb");
  EXPECT_EQ(Chosen(Ask(need)), "nvidia.com/mig-3g.20gb");
  EXPECT_EQ(Chosen(Ask(need)), "nvidia.com/mig-3g.20gb");
  const Json fifth = Ask(need);
  EXPECT_EQ(Chosen(fifth), "nvidia.com/gpu-18gb");
  EXPECT_EQ(*Find(fifth, "warnings"),
            Json(JsonArray{"nos: nvidia.com/gpu-18gb: the cheapest that meets the need; none has "
                           "room now"}));
}

// Namespaces with Pod Security "baseline" refuse pods with hostIPC.
TEST_F(SliceAdmissionTest, GivesSharesWithoutHostIpcIfTheyNeedNone) {
  AddNode("mps", "mps", "any", {{"status-model-0", "MPS-39GB"}, {"status-layout-0", ""}});
  Set();
  Json pod = Pod("nos.nebuly.com/need-memory: 18Gi");
  MakeObject(pod, "spec").erase("hostIPC");
  EXPECT_EQ(Chosen(Ask(pod)), "nvidia.com/mig-3g.20gb");
  SliceAdmission shared(gpu::Catalogue::Builtin(), clock_, [this] { return cluster_; },
                        {.shares_need_host_ipc = false});
  EXPECT_EQ(Chosen(AskIn(shared, pod)), "nvidia.com/gpu-18gb");
}

TEST_F(SliceAdmissionTest, CountsPendingPods) {
  AddNode("mps", "mps", "any", {{"status-model-0", "MPS-39GB"}, {"status-layout-0", ""}});
  AddPod(
      Parsed("metadata: {namespace: ml, name: w}\nspec: {containers: [{name: a, resources: "
             "{limits: {nvidia.com/gpu-30gb: 1}}}]}\nstatus: {phase: Pending}"));
  Set();
  EXPECT_EQ(Chosen(Ask(Pod("nos.nebuly.com/need-memory: 18Gi"))), "nvidia.com/mig-3g.20gb");
}

TEST_F(SliceAdmissionTest, ForgetsPodsThatWereNotCreated) {
  const Json whole = Pod("nos.nebuly.com/need-memory: 30Gi");
  const auto waits = [&](bool dry_run) {
    return WriteJson(*Find(Ask(whole, "CREATE", "Pod", dry_run), "warnings")).find("none has") !=
           std::string::npos;
  };
  EXPECT_FALSE(waits(true));
  EXPECT_FALSE(waits(false)) << "the first was a dry run";
  EXPECT_TRUE(waits(false));
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_FALSE(waits(false)) << "nobody has come";
}

TEST_F(SliceAdmissionTest, AnswersToOneNamespaceChangeNothingForOthers) {
  const Json whole = Pod("nos.nebuly.com/need-memory: 30Gi");
  const auto waits = [&](const std::string& ns) {
    return WriteJson(*Find(AskFrom(ns, whole), "warnings")).find("none has") != std::string::npos;
  };
  EXPECT_FALSE(waits("tenant"));
  EXPECT_TRUE(waits("tenant")) << "its own pods count";
  EXPECT_FALSE(waits("ml")) << "they may never be created";
}

// Reviews wait for the first one, which stays in its look at the cluster until `Go`.
class SliceAdmissionPlacesTest : public SliceAdmissionTest {
 protected:
  SliceAdmissionPlacesTest() {
    for (const char* ns : {"tenant", "ml"}) {
      AddPod(Parsed(std::string("metadata: {name: p, namespace: ") + ns +
                    "}\nspec: {nodeName: mig, containers: [{name: a}]}"));
    }
    Set();
  }
  int Review(const std::string& ns) {
    return places_.Review(ReviewOf(ns, Pod("nos.nebuly.com/need-memory: 9Gi"), "u")).code;
  }
  // Returns once it waits.
  void Wait(const std::string& ns) {
    codes_.push_back(std::async(std::launch::async, [this, ns] { return Review(ns); }));
    while (!held_ || places_.asking() < codes_.size()) std::this_thread::yield();
  }
  std::vector<int> Go() {
    go_.set_value();
    std::vector<int> codes;
    for (auto& code : codes_) codes.push_back(code.get());
    return codes;
  }

  std::promise<void> go_;
  std::atomic<bool> held_ = false;
  SliceAdmission places_{gpu::Catalogue::Builtin(), clock_, [this] {
                           if (places_.asking() == 1 && !held_.exchange(true)) {
                             go_.get_future().wait();
                           }
                           return cluster_;
                         }};
  std::vector<std::future<int>> codes_;
};

TEST_F(SliceAdmissionPlacesTest, OneNamespaceDoesNotHoldAllPlaces) {
  for (int i = 0; i < 4; ++i) Wait("tenant");
  EXPECT_EQ(Review("tenant"), 503);
  Wait("ml");
  EXPECT_EQ(Go(), std::vector<int>(5, 200));
}

TEST_F(SliceAdmissionPlacesTest, NamespacesWithoutPodsCountAsOne) {
  for (const char* ns : {"invented-1", "invented-2", "invented-3", "invented-4"}) Wait(ns);
  EXPECT_EQ(Review("invented-5"), 503);
  Wait("ml");
  EXPECT_EQ(Go(), std::vector<int>(5, 200));
}

TEST_F(SliceAdmissionTest, SeesClusterChangesAfterOneSecond) {
  EXPECT_EQ(Chosen(Ask(Pod("nos.nebuly.com/need-memory: 18Gi"))), "nvidia.com/mig-3g.20gb");
  AddNode("mps", "mps", "any", {{"status-model-0", "MPS-39GB"}, {"status-layout-0", ""}});
  Set();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Chosen(Ask(Pod("nos.nebuly.com/need-memory: 18Gi"))), "nvidia.com/gpu-18gb");
}

TEST_F(SliceAdmissionTest, RefusesImpossibleRequirements) {
  EXPECT_EQ(Refusal(Ask(Pod("nos.nebuly.com/need-memory: 100Gi"))),
            "no slice of GPUs that nos divides, on nodes that the pod may go to, meets the need "
            "(102400 MiB, 0/1000 of a GPU's compute); the largest is 40320 MiB (A100-40GB)");
  EXPECT_EQ(Refusal(Ask(Pod("nos.nebuly.com/need-mem: 9Gi"))),
            "annotation nos.nebuly.com/need-mem: '9Gi' is no need that is known");
  EXPECT_EQ(Refusal(Ask(Pod("nos.nebuly.com/need-memory: much"))),
            "annotation nos.nebuly.com/need-memory: 'much' is no amount of memory such as 10Gi, or "
            "less than 1Mi");
  EXPECT_EQ(Refusal(Ask(Pod("nos.nebuly.com/need-memory: 9Gi, nos.nebuly.com/need-container: z"))),
            "annotation nos.nebuly.com/need-container: the pod has no container 'z'");
  EXPECT_THAT(Refusal(Ask(Parsed("metadata: {annotations: []}"))), HasSubstr("metadata"));
  nodes_.clear();
  Set();
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(Refusal(Ask(Pod("nos.nebuly.com/need-memory: 9Gi"))),
            "no slice of GPUs that nos divides, on nodes that the pod may go to, meets the need "
            "(9216 MiB, 0/1000 of a GPU's compute)");
}

TEST_F(SliceAdmissionTest, IgnoresPodsWithoutRequirements) {
  EXPECT_EQ(Chosen(Ask(Pod("a: b"))), "");
  EXPECT_EQ(Chosen(Ask(Pod("nos.nebuly.com/need-memory: 9Gi"), "UPDATE")), "");
  EXPECT_EQ(Chosen(Ask(Pod("nos.nebuly.com/need-memory: 9Gi"), "CREATE", "Job")), "");
  const Json named = Ask(Pod("nos.nebuly.com/need-memory: 9Gi",
                             "[{name: a, resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}]"));
  EXPECT_EQ(Chosen(named), "");
  EXPECT_EQ(*Find(named, "warnings"),
            Json(JsonArray{"the pod asks for GPUs by name, too: nos.nebuly.com/need-memory is "
                           "passed over"}));
}

TEST_F(SliceAdmissionTest, RejectsMalformedReviews) {
  cluster_ = {};
  EXPECT_EQ(admission_.Review("{}").code, 503);
  EXPECT_FALSE(admission_.Ready().ok());
  Set();
  EXPECT_EQ(admission_.Review("{}").code, 400);
  EXPECT_EQ(admission_.Review("nonsense").code, 400);
}

}  // namespace
}  // namespace nos::controllers
