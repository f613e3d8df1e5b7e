// Cost of reading a list of pods from the wire: directly into typed values, through a tree, and
// through the cache that controllers read from. Times are per pod.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <malloc.h>

#include "cluster/objects.h"
#include "codec/cursor.h"
#include "kube/cache.h"

namespace nos {
namespace {

// A pod with the size and shape of a Deployment's pod on a real cluster: about 4 KB.
std::string PodText(int i) {
  std::string managed;
  for (int f = 0; f < 20; ++f)
    managed += fmt::format(R"("f:field-{}":{{".":{{}},"f:name":{{}}}},)", f);
  return fmt::format(
      R"({{"metadata":{{"name":"web-7d9c5bfb8d-{0:05}","generateName":"web-7d9c5bfb8d-","namespace":"team-{1}",
"uid":"6f0c5d5e-1111-4222-8333-{0:012}","resourceVersion":"{2}","creationTimestamp":"2026-01-02T03:04:05Z",
"labels":{{"app":"web","pod-template-hash":"7d9c5bfb8d","team":"team-{1}"}},
"annotations":{{"prometheus.io/scrape":"true","kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}},
"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d9c5bfb8d",
"uid":"0c5d5e6f-1111-4222-8333-000000000000","controller":true,"blockOwnerDeletion":true}}],
"managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",
"time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{{{3}"f:spec":{{}}}}}}]}},
"spec":{{"volumes":[{{"name":"token","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,
"path":"token"}}}}],"defaultMode":420}}}}],"containers":[{{"name":"web","image":"registry.example/web:1.2.3",
"ports":[{{"containerPort":8080,"protocol":"TCP"}}],"env":[{{"name":"A","value":"1"}},{{"name":"B","value":"2"}}],
"resources":{{"limits":{{"cpu":"2","memory":"4Gi","nvidia.com/mig-1g.5gb":"1"}},
"requests":{{"cpu":"500m","memory":"1Gi","nvidia.com/mig-1g.5gb":"1"}}}},
"volumeMounts":[{{"name":"token","readOnly":true,"mountPath":"/var/run/secrets"}}],
"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log"}}],"restartPolicy":"Always",
"nodeName":"gpu-{1}","schedulerName":"default-scheduler","priority":0,"serviceAccountName":"default",
"tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
"tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",
"tolerationSeconds":300}}]}},
"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True","lastTransitionTime":
"2026-01-02T03:04:06Z"}},{{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}}],
"hostIP":"10.0.0.1","podIP":"10.1.0.1","startTime":"2026-01-02T03:04:05Z","qosClass":"Burstable"}}}})",
      i, i % 100, 1000 + i, managed);
}

std::string ListText(int pods) {
  std::string text =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"99"},"items":[)";
  for (int i = 0; i < pods; ++i) text += (i == 0 ? "" : ",") + PodText(i);
  return text + "]}";
}

void CountPods(benchmark::State& state, const std::string& text) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["bytes per pod"] =
      static_cast<double>(text.size()) / static_cast<double>(state.range(0));
}

void BM_ReadTyped(benchmark::State& state) {
  const std::string text = ListText(static_cast<int>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    std::vector<cluster::Pod> pods;
    const Status read = ReadJson(text, [&](Cursor& list) {
      list.Members([&](std::string_view key, Cursor& items) {
        if (key != "items") return;
        items.Elements([&](Cursor& item) {
          if (!cluster::ReadPod(item, pods.emplace_back()).ok()) pods.pop_back();
        });
      });
    });
    if (!read.ok() || pods.size() != static_cast<size_t>(state.range(0))) {
      state.SkipWithError("not all pods could be read");
    }
  }
  CountPods(state, text);
}
BENCHMARK(BM_ReadTyped)->Arg(5'000)->Arg(50'000)->Unit(benchmark::kMillisecond);

void BM_ReadByTree(benchmark::State& state) {
  const std::string text = ListText(static_cast<int>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    std::vector<cluster::Pod> pods;
    const auto tree = ParseJson(text);
    for (const Json& item : tree->at("items").as_array()) {
      if (!cluster::ReadPod(item, pods.emplace_back()).ok()) pods.pop_back();
    }
    if (pods.size() != static_cast<size_t>(state.range(0))) {
      state.SkipWithError("not all pods could be read");
    }
  }
  CountPods(state, text);
}
BENCHMARK(BM_ReadByTree)->Arg(5'000)->Arg(50'000)->Unit(benchmark::kMillisecond);

// A server that serves pages and never sends watch events.
class Pages final : public kube::Transport {
 public:
  explicit Pages(int pods) : pods_(pods) {}
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    constexpr int kPage = 500;
    const std::string token = request.Query("continue");
    const int first = token.empty() ? 0 : std::stoi(token);
    const int end = std::min(pods_, first + kPage);
    kube::ApiResponse answer;
    answer.text = fmt::format(R"({{"metadata":{{"resourceVersion":"9","continue":"{}"}},"items":[)",
                              end < pods_ ? std::to_string(end) : "");
    for (int i = first; i < end; ++i) answer.text += (i == first ? "" : ",") + PodText(i);
    answer.text += "]}";
    return answer;
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest&) override {
    return Status(Code::kUnavailable, "no news");
  }

 private:
  int pods_;
};

// Heap memory of the cache per pod, in bytes.
void BM_CacheMemory(benchmark::State& state) {
  Pages pages(static_cast<int>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    const size_t before = mallinfo2().uordblks;
    kube::Client client(pages);
    kube::Cache<cluster::Pod> cache(kube::kPods, cluster::ReadPod);
    cache.Pump(client, Time());
    state.counters["kept per pod"] =
        static_cast<double>(mallinfo2().uordblks - before) / static_cast<double>(state.range(0));
  }
}
BENCHMARK(BM_CacheMemory)->Arg(50'000)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos
