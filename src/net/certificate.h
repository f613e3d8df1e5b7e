// Issues a server certificate together with the authority that clients trust (a webhook's
// caBundle).
//
//   NOS_ASSIGN(auto issued, IssueCertificate({"nos-webhook.nos.svc"}, now, now + hours(24 * 90)));
//
// ECDSA on P-256. Pure functions except for the random numbers of keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace nos::net {

struct IssuedCertificate {
  std::string certificate, key;  // PEM
  // The authority that signed it. Its key is discarded, so it never signs anything else.
  std::string authority;  // PEM
};

// The certificate and its authority are valid for these DNS names. Errors: kInvalid (no name, an
// invalid name, `until` not after `from`), kInternal (OpenSSL).
Result<IssuedCertificate> IssueCertificate(const std::vector<std::string>& dns_names, Time from,
                                           Time until);

struct CertificateFacts {
  Time from, until;
  std::vector<std::string> dns_names;
};
// Reads the first certificate in the text. Error: kInvalid.
Result<CertificateFacts> ReadCertificate(std::string_view pem);
// Checks that the key belongs to the certificate and that the authorities vouch for it. Error:
// kInvalid, naming the failed check. Does not check the validity period.
Status CheckCertificate(std::string_view certificate, std::string_view key,
                        std::string_view authorities);
// Splits a bundle into one text per certificate; skips text that is not a certificate.
std::vector<std::string> SplitCertificates(std::string_view bundle);

}  // namespace nos::net
