// Arbitrary input to the scheduler extender: a line with the verb, then the body. The answer is an
// HTTP error or JSON, accepted nodes are among the requested ones, and the extender keeps working.
#include <algorithm>
#include <string>

#include "controllers/extender.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"
#include "target.h"

using namespace nos;               // NOLINT
using namespace nos::controllers;  // NOLINT

namespace {

void CheckNames(const ExtenderNodes& asked, const Json& answer) {
  const Json* names = Find(answer, "NodeNames");
  if (names == nullptr || !names->is_array()) return;
  for (const Json& name : names->get_array()) {
    const auto found = std::ranges::find(asked.names, std::string(nos::View(name.get_string())));
    Require(found != asked.names.end(), "what passes was asked for");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = FuzzText(data, size);
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return 0;
  const std::string_view verb = text.substr(0, end), body = text.substr(end + 1);
  ManualClock clock{Time(std::chrono::seconds(1'800'000'000))};
  kube::FakeApi api;
  api.Put({{"kind", "Node"},
           {"metadata", {{"name", "n"}}},
           {"status", {{"allocatable", {{"pods", "9"}, {"nvidia.com/mig-1g.5gb", "2"}}}}}});
  kube::Client client(api);
  Extender extender(gpu::Catalogue::Builtin());
  reconcile::Runner runner(extender, api, reconcile::RunnerOptions());
  while (runner.Step(clock)) {
  }
  for (int again = 0; again < 2; ++again) {
    const Extender::Answer answer = extender.Handle(verb, body, client, clock);
    Require(!answer.body.empty(), "there is an answer");
    if (answer.code != 200) continue;
    const auto json = ParseJson(answer.body);
    Require(json.ok(), "the answer is JSON");
    if (const auto asked = ReadExtenderNodes(body); asked.ok()) CheckNames(*asked, *json);
  }
  return 0;
}
