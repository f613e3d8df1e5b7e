// Calls the webhooks of node pools (controllers/pool_scaling.h).
//
//   NOS_RETURN_IF_ERROR(CheckPoolWebhook(config));
//   PoolScaling scaling(PoolWebhookCaller(config, [&] { return leader.Leads(); }));
//
// Whoever may write NodePools chooses what is called: `prefix` bounds that, and a token goes to
// what begins with it alone. Certificates are verified; redirects are not followed; 10 seconds and
// 64 KiB are enough for an answer.
#pragma once

#include <functional>
#include <string>

#include "cmd/daemon/config_file.h"
#include "controllers/pool_scaling.h"

namespace nos::cmd {

struct PoolWebhookConfig {
  std::string prefix;  // "https://hooks.example/nos/"; "": any
  std::string token_file, ca_file;
};
// The fields of the group webhook.
void DescribePoolWebhook(ConfigFields& fields, PoolWebhookConfig& config);
// Error: kInvalid with the field.
Status CheckPoolWebhook(const PoolWebhookConfig& config);

// `may_write`: asked when the next thing is to send a POST; no: it is not sent (kUnavailable).
controllers::PoolScaling::CallWebhook PoolWebhookCaller(PoolWebhookConfig config,
                                                        std::function<bool()> may_write);

}  // namespace nos::cmd
