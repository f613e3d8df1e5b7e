#include "cmd/daemon/own_certificate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "net/certificate.h"

namespace nos::cmd {
namespace {

// Maximum pause between checks for changes that send no notification.
constexpr Duration kMaxWait = std::chrono::minutes(1);

}  // namespace

OwnCertificate::OwnCertificate(controllers::WebhookCertificateConfig config,
                               kube::Transport& transport, std::function<bool()> leads,
                               std::string of, const MetricFamily& expiry, Metrics& metrics,
                               Serve serve)
    : config_(std::move(config)),
      client_(transport),
      leads_(std::move(leads)),
      of_(std::move(of)),
      expiry_(expiry),
      metrics_(metrics),
      serve_(std::move(serve)),
      thread_([this] { Run(); }) {}

OwnCertificate::~OwnCertificate() {
  stop_ = true;
  bell_.Ring();
  thread_.join();
}

Status OwnCertificate::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

void OwnCertificate::Run() {
  const SystemClock clock;  // certificates expire by system time
  controllers::WebhookCertificate certificate(config_, [this] { bell_.Ring(); });
  Status said;
  while (!stop_) {
    certificate.Step(client_, leads_(), clock.Now());
    const Status& error = certificate.error();
    if (!error.ok() && error.message() != said.message()) {
      Log(LogLevel::kWarn, "failed to renew certificate",
          {{"of", of_}, {"error", error.ToString()}});
    }
    said = error;
    if (certificate.kept() != nullptr) {
      const Status used = Use(*certificate.kept());
      const std::scoped_lock lock(mutex_);
      status_ = used;
    }
    const Duration wait = certificate.NextDue() - clock.Now();
    bell_.Wait(std::clamp<Duration>(wait, std::chrono::milliseconds(1), kMaxWait));
  }
}

Status OwnCertificate::Use(const controllers::KeptCertificate& kept) {
  if (serves_ && kept.certificate == used_) return Status::Ok();
  net::TlsTexts texts{kept.certificate, kept.key};
  if (identity_ == nullptr) {
    NOS_ASSIGN(identity_, net::TlsIdentity::Of(std::move(texts)));
  } else {
    NOS_RETURN_IF_ERROR(identity_->Replace(std::move(texts)));
  }
  used_ = kept.certificate;
  if (const auto facts = net::ReadCertificate(used_); facts.ok()) {
    metrics_.Set(expiry_, {}, ToSeconds(facts->until.time_since_epoch()));
  }
  if (serves_) return Status::Ok();
  NOS_RETURN_IF_ERROR(serve_(identity_));
  serves_ = true;
  return Status::Ok();
}

}  // namespace nos::cmd
