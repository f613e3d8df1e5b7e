#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <fstream>

#include "net/certificate.h"
#include "net/http_server.h"

namespace nos::net {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using ::testing::HasSubstr;

struct Pair {
  std::string certificate, key;  // PEM
};

std::string Pem(const std::function<void(BIO*)>& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

// A self-signed certificate, valid for an hour.
Pair MakePair(const std::string& name) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_EXTENSION* ca = X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "CA:TRUE");
  X509_add_ext(certificate, ca, -1);
  X509_EXTENSION_free(ca);
  X509_sign(certificate, key, EVP_sha256());
  Pair pair{Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); }), Pem([&](BIO* bio) {
              PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
            })};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pair;
}

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    Write("tls", MakePair("first"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, const Pair& pair) const {
    std::ofstream(File(name + ".crt")) << pair.certificate;
    std::ofstream(File(name + ".key")) << pair.key;
  }
  TlsFiles Files() const { return {File("tls.crt"), File("tls.key"), "", Duration::zero()}; }
  std::unique_ptr<HttpServer> Serve(const TlsFiles& files) const {
    HttpServerOptions options;
    options.tls = files;
    auto server = HttpServer::Start(options, [](const HttpRequest& request) {
      HttpResponse response;
      response.body = std::to_string(request.body.size());
      return response;
    });
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    return std::move(server).value();
  }

  // The server's answer to a body of this size; "" if the connection fails.
  static std::string Ask(uint16_t port, size_t size, const std::string& trusted_file,
                         const std::string& identity = "") {
    asio::io_context io;
    ssl::context context(ssl::context::tls_client);
    context.load_verify_file(trusted_file);
    if (!identity.empty()) {
      context.use_certificate_file(identity + ".crt", ssl::context::pem);
      context.use_private_key_file(identity + ".key", ssl::context::pem);
    }
    ssl::stream<asio::ip::tcp::socket> stream(io, context);
    stream.set_verify_mode(ssl::verify_peer);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), port});
    boost::system::error_code error;
    stream.handshake(ssl::stream_base::client, error);
    if (error) return "";
    const std::string request =
        "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
        std::to_string(size) + "\r\n\r\n" + std::string(size, 'a');
    asio::write(stream, asio::buffer(request), error);
    std::string answer;
    asio::read(stream, asio::dynamic_buffer(answer), error);
    // The server must close with a TLS close_notify, not by cutting the connection.
    return error == asio::error::eof || answer.empty() ? answer : "cut off: " + answer;
  }

  std::filesystem::path folder_;
};

TEST_F(TlsTest, ServesRequestsOfAnySize) {
  const auto server = Serve(Files());
  EXPECT_THAT(Ask(server->port(), 3, File("tls.crt")), HasSubstr("\r\n\r\n3"));
  EXPECT_THAT(Ask(server->port(), 1'000'000, File("tls.crt")), HasSubstr("\r\n\r\n1000000"));
}

TEST_F(TlsTest, ClientWithOtherAuthorityFailsToConnect) {
  const auto server = Serve(Files());
  Write("other", MakePair("other"));
  EXPECT_EQ(Ask(server->port(), 3, File("other.crt")), "");
}

TEST_F(TlsTest, UsesRotatedCertificateAndIgnoresBrokenOne) {
  const auto server = Serve(Files());
  Write("new", MakePair("second"));
  std::filesystem::copy_file(File("tls.crt"), File("old.crt"));
  EXPECT_EQ(Ask(server->port(), 1, File("new.crt")), "");
  // Only the certificate is replaced, so it does not match the old key yet.
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(File("new.crt"), File("tls.crt"), overwrite);
  EXPECT_NE(Ask(server->port(), 1, File("old.crt")), "");
  std::filesystem::copy_file(File("new.key"), File("tls.key"), overwrite);
  EXPECT_NE(Ask(server->port(), 1, File("new.crt")), "");
  EXPECT_EQ(Ask(server->port(), 1, File("old.crt")), "");
}

TEST_F(TlsTest, ReplacesIdentityAtRunTime) {
  const std::vector<std::string> name{"server"};
  const Time now = SystemClock().Now();
  const auto first = IssueCertificate(name, now, now + std::chrono::hours(1));
  const auto second = IssueCertificate(name, now, now + std::chrono::hours(1));
  ASSERT_TRUE(first.ok() && second.ok());
  std::ofstream(File("first.crt")) << first->authority;
  std::ofstream(File("second.crt")) << second->authority;
  HttpServerOptions options;
  auto identity = TlsIdentity::Of({first->certificate, first->key});
  ASSERT_TRUE(identity.ok());
  options.identity = std::move(identity).value();
  const auto server = HttpServer::Start(options, [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(server.ok());
  EXPECT_NE(Ask((*server)->port(), 1, File("first.crt")), "");
  EXPECT_EQ(options.identity->Replace({first->certificate, second->key}).code(), Code::kInvalid);
  EXPECT_NE(Ask((*server)->port(), 1, File("first.crt")), "");
  EXPECT_TRUE(options.identity->Replace({second->certificate, second->key}).ok());
  EXPECT_NE(Ask((*server)->port(), 1, File("second.crt")), "");
  EXPECT_EQ(Ask((*server)->port(), 1, File("first.crt")), "");
}

TEST_F(TlsTest, RequiresClientCertificateIfConfigured) {
  Write("client", MakePair("client"));
  Write("stranger", MakePair("stranger"));
  TlsFiles files = Files();
  files.client_ca = File("client.crt");
  const auto server = Serve(files);
  EXPECT_NE(Ask(server->port(), 1, File("tls.crt"), File("client")), "");
  EXPECT_EQ(Ask(server->port(), 1, File("tls.crt")), "");
  EXPECT_EQ(Ask(server->port(), 1, File("tls.crt"), File("stranger")), "");
}

// Browsers resume their sessions.
TEST_F(TlsTest, ClientWithCertificateMayResumeItsSession) {
  Write("client", MakePair("client"));
  TlsFiles files = Files();
  files.client_ca = File("client.crt");
  const auto server = Serve(files);
  ssl::context context(ssl::context::tlsv12_client);
  context.load_verify_file(File("tls.crt"));
  context.use_certificate_file(File("client.crt"), ssl::context::pem);
  context.use_private_key_file(File("client.key"), ssl::context::pem);
  std::unique_ptr<SSL_SESSION, void (*)(SSL_SESSION*)> session(nullptr, &SSL_SESSION_free);
  for (const bool resumes : {false, true}) {
    asio::io_context io;
    ssl::stream<asio::ip::tcp::socket> stream(io, context);
    if (resumes) SSL_set_session(stream.native_handle(), session.get());
    stream.next_layer().connect({asio::ip::address_v4::loopback(), server->port()});
    boost::system::error_code error;
    stream.handshake(ssl::stream_base::client, error);
    ASSERT_FALSE(error) << error.message();
    EXPECT_EQ(SSL_session_reused(stream.native_handle()) == 1, resumes);
    session.reset(SSL_get1_session(stream.native_handle()));
    // OpenSSL forgets the session of a connection that is cut.
    SSL_set_shutdown(stream.native_handle(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }
}

TEST_F(TlsTest, ClosesPlainTextConnection) {
  const auto server = Serve(Files());
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), server->port()});
  asio::write(socket, asio::buffer(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  std::string answer;
  boost::system::error_code error;
  asio::read(socket, asio::dynamic_buffer(answer), error);
  EXPECT_TRUE(error);
  EXPECT_THAT(answer, testing::Not(HasSubstr("200")));
}

TEST_F(TlsTest, ReportsInvalidTlsFiles) {
  TlsFiles files = Files();
  files.key = File("missing.key");
  EXPECT_EQ(TlsIdentity::Read(files).status().code(), Code::kNotFound);
  std::ofstream(File("tls.key")) << "no key";
  EXPECT_THAT(TlsIdentity::Read(Files()).status().ToString(), HasSubstr("the key"));
  Write("other", MakePair("other"));
  files.key = File("other.key");
  EXPECT_EQ(TlsIdentity::Read(files).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace nos::net
