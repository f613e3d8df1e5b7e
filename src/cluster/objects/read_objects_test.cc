// Objects that ReadObjects refuses although they decode, and objects that it must accept.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "cluster/objects.h"

namespace nos::cluster {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto objects = ReadObjects(text, "f");
  EXPECT_FALSE(objects.ok()) << text;
  return objects.ok() ? "" : objects.status().message();
}

// The error for a Pod with these fields in its spec, without the location prefix; "" if it is
// accepted.
std::string PodError(std::string_view spec) {
  const auto objects = ReadObjects(
      fmt::format("{{kind: Pod, metadata: {{name: a}}, spec: {{containers: [{{}}], {}}}}}", spec),
      "f");
  if (objects.ok()) return "";
  const std::string place = "f: document 1 (Pod a): ";
  EXPECT_TRUE(objects.status().message().starts_with(place)) << objects.status().message();
  return objects.status().message().substr(place.size());
}

std::string TolerationError(std::string_view toleration) {
  return PodError(fmt::format("tolerations: [{{operator: Exists}}, {{{}}}]", toleration));
}

std::string Required(std::string_view terms) {
  return PodError(
      fmt::format("affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: "
                  "{{nodeSelectorTerms: [{}]}}}}}}",
                  terms));
}

// Without the path up to the requirement.
std::string RequirementError(std::string_view requirement) {
  const std::string error = Required(fmt::format("{{matchExpressions: [{{{}}}]}}", requirement));
  const std::string path =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
      "nodeSelectorTerms[0].matchExpressions[0].";
  if (error.empty()) return "";
  EXPECT_TRUE(error.starts_with(path)) << error;
  return error.substr(path.size());
}

std::string TaintError(std::string_view taint) {
  return ErrorOf(
      fmt::format("{{kind: Node, metadata: {{name: n}}, spec: {{taints: [{}]}}}}", taint));
}

TEST(ReadObjectsRefusesTest, PodWithoutContainers) {
  for (const char* spec : {"null", "{}", "{containers: null}", "{containers: []}"}) {
    EXPECT_EQ(ErrorOf(fmt::format("{{kind: Pod, metadata: {{name: a}}, spec: {}}}", spec)),
              "f: document 1 (Pod a): spec.containers: must hold at least one container");
  }
}

TEST(ReadObjectsRefusesTest, TolerationsThatTheApiServerRefuses) {
  EXPECT_EQ(TolerationError("key: k, operator: Bar"),
            "spec.tolerations[1].operator: 'Bar' is none of Exists, Equal, Lt, Gt");
  EXPECT_EQ(TolerationError("key: k, effect: Nope"),
            "spec.tolerations[1].effect: 'Nope' is none of NoSchedule, PreferNoSchedule, "
            "NoExecute");
  EXPECT_EQ(TolerationError("value: v"),
            "spec.tolerations[1].operator: must be Exists when there is no key");
  EXPECT_EQ(TolerationError("key: k, operator: Exists, value: v"),
            "spec.tolerations[1].value: must be empty when the operator is Exists");
  EXPECT_EQ(TolerationError("key: k, value: v, effect: NoExecute, tolerationSeconds: 300"), "");
}

TEST(ReadObjectsRefusesTest, TaintsThatTheApiServerRefuses) {
  const std::string place = "f: document 1 (Node n): spec.taints[0].";
  EXPECT_EQ(TaintError("{key: k, effect: Nope}"),
            place + "effect: 'Nope' is none of NoSchedule, PreferNoSchedule, NoExecute");
  EXPECT_EQ(TaintError("{key: k}"),
            place + "effect: is missing: NoSchedule, PreferNoSchedule, NoExecute");
  EXPECT_EQ(TaintError("{effect: NoSchedule}"), place + "key: is missing");
}

TEST(ReadObjectsRefusesTest, NodeSelectorRequirementsThatTheApiServerRefuses) {
  EXPECT_EQ(RequirementError("key: k, operator: Foo"),
            "operator: 'Foo' is none of In, NotIn, Exists, DoesNotExist, Gt, Lt");
  EXPECT_EQ(RequirementError("key: k"),
            "operator: is missing: In, NotIn, Exists, DoesNotExist, Gt, Lt");
  EXPECT_EQ(RequirementError("operator: Exists"), "key: is missing");
  EXPECT_EQ(RequirementError("key: k, operator: In"), "values: must not be empty for In");
  EXPECT_EQ(RequirementError("key: k, operator: NotIn, values: []"),
            "values: must not be empty for NotIn");
  EXPECT_EQ(RequirementError("key: k, operator: Exists, values: [a]"),
            "values: must be empty for Exists");
  EXPECT_EQ(RequirementError("key: k, operator: DoesNotExist, values: [a]"),
            "values: must be empty for DoesNotExist");
  for (const char* values : {"[]", "['1', '2']"}) {
    EXPECT_EQ(RequirementError(fmt::format("key: k, operator: Gt, values: {}", values)),
              "values: must be exactly one for Gt");
  }
  EXPECT_EQ(RequirementError("key: k, operator: Lt, values: ['4']"), "");
  EXPECT_EQ(RequirementError("key: k, operator: Gt, values: [x]"), "") << "a server may hold it";
  EXPECT_EQ(RequirementError("key: k, operator: NotIn, values: [a, b]"), "");
  EXPECT_EQ(RequirementError("key: k, operator: Exists"), "");
}

TEST(ReadObjectsRefusesTest, AffinityThatTheApiServerRefuses) {
  EXPECT_NE(Required(""), "");
  EXPECT_EQ(Required("{matchFields: [{key: metadata.name, operator: In, values: [n]}]}"), "");
  for (const char* field :
       {"key: spec.x, operator: In, values: [n]", "key: metadata.name, operator: Gt, values: ['1']",
        "key: metadata.name, operator: In, values: [n, m]"}) {
    EXPECT_NE(Required(fmt::format("{{matchFields: [{{{}}}]}}", field)), "") << field;
  }
  const auto preferred = [](std::string_view weight, std::string_view op) {
    return PodError(
        fmt::format("affinity: {{nodeAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: "
                    "[{{weight: {}, preference: {{matchExpressions: [{{key: k, operator: {}}}]}}}}]"
                    "}}}}",
                    weight, op));
  };
  EXPECT_EQ(preferred("1", "Exists"), "");
  EXPECT_NE(preferred("0", "Exists"), "");
  EXPECT_EQ(preferred("1", "Foo"),
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]."
            "preference.matchExpressions[0].operator: 'Foo' is none of In, NotIn, Exists, "
            "DoesNotExist, Gt, Lt");
}

// A live object is not dropped because of a value that a newer API server may know.
TEST(DecodePodTest, AcceptsValuesThatANewerServerMayStore) {
  const auto pod = ParseJson(
      R"({"metadata":{"name":"a"},"spec":{"tolerations":[{"key":"k","operator":"Bar"}]}})");
  EXPECT_TRUE(DecodePod(*pod).ok());
  const auto node =
      ParseJson(R"({"metadata":{"name":"n"},"spec":{"taints":[{"key":"k","effect":"Nope"}]}})");
  EXPECT_TRUE(DecodeNode(*node).ok());
}

TEST(ReadObjectsRefusesTest, KindsAndVersionsThatDoNotExist) {
  const auto typed = [](std::string_view version, std::string_view kind) {
    return ErrorOf(
        fmt::format("{{apiVersion: {}, kind: {}, metadata: {{name: n}}}}", version, kind));
  };
  EXPECT_EQ(typed("v1", "node"),
            "f: document 1 (node n): kind: 'node' does not exist in v1; write Pod, Node or List, "
            "in this spelling");
  EXPECT_EQ(typed("v2", "Node"),
            "f: document 1 (Node n): apiVersion: 'v2' does not exist; Pods and Nodes are in v1");
  EXPECT_EQ(typed("apps/v1", "Pod"),
            "f: document 1 (Pod n): apiVersion: 'apps/v1' has no Pod; it is in v1");
  EXPECT_EQ(typed("/v1", "Node"), "f: document 1 (Node n): apiVersion: '/v1' is not group/version");
  EXPECT_NE(typed("v1", "Nodes"), "");
  EXPECT_NE(typed("v2", "List"), "");
  EXPECT_EQ(
      ErrorOf("{kind: node, metadata: {name: n}}"),
      "f: document 1: apiVersion: is missing, and kind: 'node' is none of Pod, Node and List");
}

TEST(ReadObjectsRefusesTest, DocumentsThatAreNoKubernetesObjects) {
  EXPECT_EQ(ErrorOf("{replicas: 3}"),
            "f: document 1: kind: is missing, so this is not a Kubernetes object");
  const std::string what =
      "this is not a Kubernetes object but a list or a bare value; several objects go under "
      "items: of a List";
  EXPECT_EQ(ErrorOf("hello\n"), "f: document 1: " + what);
  EXPECT_EQ(ErrorOf(R"([{"kind":"Node"}])"), "f: document 1: " + what);
  EXPECT_EQ(ErrorOf("{kind: List, items: [7]}"), "f: document 1, item 1: " + what);
}

TEST(ReadObjectsTest, SkipsAndCountsOtherRealKinds) {
  const auto objects = ReadObjects(
      "{apiVersion: v1, kind: ConfigMap}\n---\n{apiVersion: apps/v1, kind: Deployment}\n---\n"
      "{apiVersion: v1, kind: ServiceList, items: []}\n---\n"
      "{apiVersion: longhorn.io/v1beta2, kind: Node}\n",
      "f");
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  EXPECT_EQ(objects->ignored, 4u);
}

TEST(ReadObjectsTest, ReadsNestedListsUpToADepth) {
  const std::string node = "{kind: Node, metadata: {name: n}}";
  const auto in_lists = [](int lists, std::string text) {
    for (int i = 0; i < lists; ++i) text = "{kind: List, items: [" + text + "]}";
    return text;
  };
  const auto objects = ReadObjects(in_lists(3, node), "f");
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  EXPECT_EQ(objects->nodes.size(), 1u);
  EXPECT_EQ(ErrorOf(in_lists(2, "{kind: Node, metadata: {}}")),
            "f: document 1, item 1, item 1 (Node without a name): metadata.name: is missing");
  EXPECT_EQ(ErrorOf(in_lists(5, node)),
            "f: document 1, item 1, item 1, item 1, item 1: Lists are nested too deeply");
}

TEST(ReadObjectsRefusesTest, BrokenJsonWithJsonError) {
  for (const char* text : {R"({"kind":"List","items":[)", " [1, 2", "\n[{\"a\": }, }"}) {
    EXPECT_TRUE(ErrorOf(text).starts_with("f: JSON: ")) << ErrorOf(text);
  }
}

TEST(ReadObjectsRefusesTest, FractionsOfDevices) {
  const auto pod = [](const std::string& quantity) {
    return ErrorOf(
        "{kind: Pod, metadata: {name: p}, spec: {containers: [{resources: {requests: "
        "{nvidia.com/mig-1g.5gb: " +
        quantity + "}}}]}}");
  };
  const std::string where =
      "f: document 1 (Pod p): spec.containers[0].resources.requests[nvidia.com/mig-1g.5gb]: ";
  EXPECT_EQ(pod("500m"), where + "'500m' must be a whole number");
  EXPECT_EQ(pod("1500m"), where + "'1500m' must be a whole number");
  EXPECT_EQ(pod("null"), where + "must be a quantity, not null");
  EXPECT_TRUE(
      ReadObjects(
          "{kind: Node, metadata: {name: n}, status: {allocatable: {nvidia.com/gpu: 2000m}}}", "f")
          .ok());
  EXPECT_EQ(ErrorOf("{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 1500m, "
                    "nvidia.com/gpu: 500m}}}"),
            "f: document 1 (Node n): status.allocatable[nvidia.com/gpu]: '500m' must be a whole "
            "number");
}

TEST(ReadObjectsRefusesTest, DuplicateYamlKeys) {
  EXPECT_EQ(ErrorOf("kind: Node\nmetadata:\n  name: a\n  name: b\n"),
            "f: YAML document 1, line 4, column 3: the key 'name' is already in this mapping");
}

TEST(ReadObjectsRefusesTest, DuplicateJsonKeys) {
  EXPECT_EQ(ErrorOf(R"({"kind":"List","items":[{"kind":"Node","metadata":{"name":"a"}},
                       {"kind":"Node","metadata":{"name":"b","name":"c"}}]})"),
            "f: JSON: items[1].metadata.name: is given twice");
}

TEST(ReadObjectsRefusesTest, TextThatIsNotUtf8) {
  EXPECT_EQ(ErrorOf("kind: Node\nmetadata: {name: caf\xe9}\n"),
            "f: YAML document 1, line 2, column 18: metadata.name: is not UTF-8 text");
  EXPECT_EQ(ErrorOf("{\"kind\": \"Node\", \"metadata\": {\"name\": \"\xff\"}}"),
            "f: YAML document 1, line 1, column 39: metadata.name: is not UTF-8 text");
}

TEST(ReadObjectsRefusesTest, NullInAList) {
  EXPECT_EQ(ErrorOf("{kind: Pod, metadata: {name: p}, spec: {containers: [null, {name: c}]}}"),
            "f: document 1 (Pod p): spec.containers[0]: must not be null");
  EXPECT_EQ(PodError("schedulingGates: [null]"), "spec.schedulingGates[0]: must not be null");
}

}  // namespace
}  // namespace nos::cluster
