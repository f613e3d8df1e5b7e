#include "net/certificate.h"

#include <gtest/gtest.h>

namespace nos::net {
namespace {

using std::chrono::hours;

const Time kFrom{std::chrono::seconds(1'800'000'000)};

TEST(CertificateTest, IssuesCertificateForNamesAndPeriod) {
  const auto issued = IssueCertificate({"a.ns.svc", "a.ns"}, kFrom, kFrom + hours(24));
  ASSERT_TRUE(issued.ok()) << issued.status().ToString();
  const auto facts = ReadCertificate(issued->certificate);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->from, kFrom);
  EXPECT_EQ(facts->until, kFrom + hours(24));
  EXPECT_EQ(facts->dns_names, (std::vector<std::string>{"a.ns.svc", "a.ns"}));
  EXPECT_TRUE(CheckCertificate(issued->certificate, issued->key, issued->authority).ok());
}

TEST(CertificateTest, RefusesForeignKeyAndAuthority) {
  const auto one = IssueCertificate({"a"}, kFrom, kFrom + hours(1));
  const auto other = IssueCertificate({"a"}, kFrom, kFrom + hours(1));  // same names, another key
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_FALSE(CheckCertificate(one->certificate, other->key, one->authority).ok());
  EXPECT_FALSE(CheckCertificate(one->certificate, one->key, other->authority).ok());
  const std::string both = other->authority + one->authority;
  EXPECT_TRUE(CheckCertificate(one->certificate, one->key, both).ok());
  EXPECT_EQ(SplitCertificates(both), (std::vector{other->authority, one->authority}));
}

TEST(CertificateTest, RefusesInvalidInput) {
  EXPECT_EQ(IssueCertificate({}, kFrom, kFrom + hours(1)).status().code(), Code::kInvalid);
  EXPECT_EQ(IssueCertificate({"a,IP:1.2.3.4"}, kFrom, kFrom + hours(1)).status().code(),
            Code::kInvalid);
  EXPECT_EQ(IssueCertificate({"a"}, kFrom, kFrom).status().code(), Code::kInvalid);
  EXPECT_EQ(ReadCertificate("nonsense").status().code(), Code::kInvalid);
  EXPECT_EQ(CheckCertificate("", "", "").code(), Code::kInvalid);
  EXPECT_TRUE(SplitCertificates("nonsense").empty());
}

}  // namespace
}  // namespace nos::net
