// Certificates for a server whose clients are told whom to trust.
//
//   NOS_ASSIGN(auto issued, IssueCertificate({"nos-webhook.nos.svc"}, now, now + hours(24 * 90)));
//
// ECDSA on P-256. Pure but for the random numbers of keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace nos::net {

struct IssuedCertificate {
  std::string certificate, key;  // PEM
  // The authority that has signed it, and nothing else ever: its key is forgotten.
  std::string authority;  // PEM
};

// Valid for these DNS names, both it and its authority. Errors: kInvalid (no name, a name that is
// none, `until` not after `from`), kInternal (OpenSSL).
Result<IssuedCertificate> IssueCertificate(const std::vector<std::string>& dns_names, Time from,
                                           Time until);

struct CertificateFacts {
  Time from, until;
  std::vector<std::string> dns_names;
};
// Of the first certificate in the text. Error: kInvalid.
Result<CertificateFacts> ReadCertificate(std::string_view pem);
// Whether the key is the certificate's, and the authorities vouch for it. Error: kInvalid, which of
// them is not so; validity in time is not looked at.
Status CheckCertificate(std::string_view certificate, std::string_view key,
                        std::string_view authorities);
// The certificates of a bundle, a text each; what is none is left out.
std::vector<std::string> SplitCertificates(std::string_view bundle);

}  // namespace nos::net
