// Calls the webhooks of node pools (controllers/pool_scaling.h).
//
//   NOS_RETURN_IF_ERROR(CheckPoolWebhook(config));
//   PoolScaling scaling(PoolWebhookCaller(config, [&] { return leader.Leads(); }));
//
// Users who can write NodePools choose the URL, so only URLs with the prefix are called.
// Certificates are verified and redirects are not followed. An answer is limited to 10 seconds and
// 64 KiB.
#pragma once

#include <functional>
#include <string>

#include "cmd/daemon/config_file.h"
#include "controllers/pool_scaling.h"

namespace nos::cmd {

struct PoolWebhookConfig {
  std::string prefix;  // "https://hooks.example/nos/"; "": none is called
  std::string token_file, ca_file;
};
// Fields of the group webhook.
void DescribePoolWebhook(ConfigFields& fields, PoolWebhookConfig& config);
// Error: kInvalid with the field.
Status CheckPoolWebhook(const PoolWebhookConfig& config);

// `may_write` is called just before a POST is sent; if it returns false, the POST fails with
// kUnavailable.
controllers::PoolScaling::CallWebhook PoolWebhookCaller(PoolWebhookConfig config,
                                                        std::function<bool()> may_write);

}  // namespace nos::cmd
