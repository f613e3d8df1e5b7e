#include "net/certificate.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>

#include "net/openssl.h"

namespace nos::net {
namespace {

using Bio = std::unique_ptr<BIO, FreeWith<&BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, FreeWith<&EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, FreeWith<&X509_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, FreeWith<&GENERAL_NAMES_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<&X509_EXTENSION_free>>;

Status Failed(std::string_view what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return Internal(fmt::format("{}: {}", what, text.data()));
}

Bio Reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);  // NOLINT(google-runtime-int): OpenSSL's
  return {data, static_cast<size_t>(size)};
}

X509Ptr NextCertificate(BIO* bio) {
  X509Ptr found(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
  ERR_clear_error();  // the end of the input is reported as an error
  return found;
}

Result<std::string> PemOf(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return Failed("write a certificate");
  return TextOf(bio.get());
}

Result<std::string> PemOf(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("write a key");
  }
  return TextOf(bio.get());
}

// Checks for a valid DNS name. Other characters could change the meaning of the extension's text.
bool IsDnsName(std::string_view name) {
  constexpr std::string_view kMay =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  return !name.empty() && name.size() <= 253 &&
         name.find_first_not_of(kMay) == std::string_view::npos;
}

bool SetSerial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  bytes[0] &= 0x7f;  // keeps the number positive
  const std::unique_ptr<BIGNUM, FreeWith<&BN_free>> number(
      BN_bin2bn(bytes.data(), bytes.size(), nullptr));
  return BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetTime(ASN1_TIME* field, Time time) {
  return ASN1_TIME_set(
             field, std::chrono::system_clock::to_time_t(
                        std::chrono::time_point_cast<std::chrono::system_clock::duration>(time))) !=
         nullptr;
}

bool SetName(X509_NAME* name, const std::string& common) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(common.data()),
                                    static_cast<int>(common.size()), -1, 0) == 1;
}

bool AddExtension(X509* to, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  return extension != nullptr && X509_add_ext(to, extension.get(), -1) == 1;
}

struct Draft {
  X509Ptr certificate{X509_new()};
  Key key{EVP_EC_gen("P-256")};
};

// Fills in everything but extensions and signature.
bool Begin(Draft& draft, const std::string& name, Time from, Time until) {
  X509* const x509 = draft.certificate.get();
  constexpr long kVersion3 = 2;  // NOLINT(google-runtime-int): OpenSSL's
  return x509 != nullptr && draft.key != nullptr && X509_set_version(x509, kVersion3) == 1 &&
         SetSerial(x509) && SetTime(X509_getm_notBefore(x509), from) &&
         SetTime(X509_getm_notAfter(x509), until) && SetName(X509_get_subject_name(x509), name) &&
         X509_set_pubkey(x509, draft.key.get()) == 1;
}

bool Sign(Draft& draft, const Draft& authority) {
  X509* const x509 = draft.certificate.get();
  return X509_set_issuer_name(x509, X509_get_subject_name(authority.certificate.get())) == 1 &&
         X509_sign(x509, authority.key.get(), EVP_sha256()) != 0;
}

std::string AlternativeNames(const std::vector<std::string>& dns_names) {
  std::string text;
  for (const std::string& name : dns_names) text += (text.empty() ? "DNS:" : ",DNS:") + name;
  return text;
}

Result<Time> TimeOf(const ASN1_TIME* field) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(field, &parts) != 1) return Invalid("a certificate's time cannot be read");
  return Time(std::chrono::seconds(timegm(&parts)));
}

}  // namespace

Result<IssuedCertificate> IssueCertificate(const std::vector<std::string>& dns_names, Time from,
                                           Time until) {
  if (dns_names.empty() || until <= from) return Invalid("a certificate needs a name and a time");
  for (const std::string& name : dns_names) {
    if (!IsDnsName(name)) return Invalid(fmt::format("'{}' is no DNS name", name));
  }
  Draft authority, leaf;
  // Each authority gets a unique name: a client that trusts two must not confuse them.
  const std::string of = fmt::format("nos webhook authority {}", FormatTime(from));
  X509 *const root = authority.certificate.get(), *const x509 = leaf.certificate.get();
  const bool made = Begin(authority, of, from, until) &&
                    AddExtension(root, root, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    AddExtension(root, root, NID_key_usage, "critical,keyCertSign") &&
                    AddExtension(root, root, NID_subject_key_identifier, "hash") &&
                    Sign(authority, authority) && Begin(leaf, "nos webhook", from, until) &&
                    AddExtension(x509, root, NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(x509, root, NID_key_usage, "critical,digitalSignature") &&
                    AddExtension(x509, root, NID_ext_key_usage, "serverAuth") &&
                    AddExtension(x509, root, NID_authority_key_identifier, "keyid") &&
                    AddExtension(x509, root, NID_subject_alt_name, AlternativeNames(dns_names)) &&
                    Sign(leaf, authority);
  if (!made) return Failed("make a certificate");
  IssuedCertificate issued;
  NOS_ASSIGN(issued.certificate, PemOf(x509));
  NOS_ASSIGN(issued.key, PemOf(leaf.key.get()));
  NOS_ASSIGN(issued.authority, PemOf(root));
  return issued;
}

Result<CertificateFacts> ReadCertificate(std::string_view pem) {
  const Bio bio = Reader(pem);
  const X509Ptr certificate = NextCertificate(bio.get());
  if (certificate == nullptr) return Invalid("there is no certificate");
  CertificateFacts facts;
  NOS_ASSIGN(facts.from, TimeOf(X509_get0_notBefore(certificate.get())));
  NOS_ASSIGN(facts.until, TimeOf(X509_get0_notAfter(certificate.get())));
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    facts.dns_names.emplace_back(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
        static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
  }
  return facts;
}

Status CheckCertificate(std::string_view certificate, std::string_view key,
                        std::string_view authorities) {
  const Bio of_certificate = Reader(certificate), of_key = Reader(key);
  const X509Ptr x509 = NextCertificate(of_certificate.get());
  if (x509 == nullptr) return Invalid("there is no certificate");
  const Key private_key(PEM_read_bio_PrivateKey(of_key.get(), nullptr, nullptr, nullptr));
  const bool pair =
      private_key != nullptr && X509_check_private_key(x509.get(), private_key.get()) == 1;
  ERR_clear_error();
  if (!pair) return Invalid("key and certificate are no pair");
  const Bio bundle = Reader(authorities);
  while (const X509Ptr authority = NextCertificate(bundle.get())) {
    const bool vouches = X509_check_issued(authority.get(), x509.get()) == X509_V_OK &&
                         X509_verify(x509.get(), X509_get0_pubkey(authority.get())) == 1;
    ERR_clear_error();
    if (vouches) return Status::Ok();
  }
  return Invalid("no authority vouches for the certificate");
}

std::vector<std::string> SplitCertificates(std::string_view bundle) {
  std::vector<std::string> texts;
  const Bio bio = Reader(bundle);
  while (const X509Ptr certificate = NextCertificate(bio.get())) {
    auto text = PemOf(certificate.get());
    if (text.ok()) texts.push_back(std::move(text).value());
  }
  return texts;
}

}  // namespace nos::net
