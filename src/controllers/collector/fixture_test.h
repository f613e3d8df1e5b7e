// Runs a leading collector against a fake API server that the test fills.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "controllers/collector.h"
#include "reconcile/testing/scene.h"

namespace nos::controllers {

class CollectorFixture : public ::testing::Test {
 protected:
  CollectorFixture() { Start(); }

  void Start() {
    runner_.reset();
    collector_ =
        std::make_unique<Collector>(gpu::Catalogue::Builtin(), [&](std::vector<Json> records) {
          records_.insert(records_.end(), records.begin(), records.end());
        });
    collector_->Lead(true);
    reconcile::RunnerOptions options;
    options.watch_context = true;
    options.context_kinds = CollectorKinds();
    runner_ = std::make_unique<reconcile::Runner>(*collector_, api_, options);
  }
  void Run() {
    records_.clear();
    ASSERT_TRUE(reconcile::testing::RunFor(*runner_, clock_, std::chrono::seconds(10)));
    kube::Client client(api_);
    collector_->Follow(runner_->view(), client, clock_);
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  std::vector<Json> records_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<reconcile::Runner> runner_;
};

}  // namespace nos::controllers
