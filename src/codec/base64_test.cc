#include "codec/base64.h"

#include <gtest/gtest.h>

namespace nos {
namespace {

TEST(Base64, EncodesAndDecodesRfc4648Vectors) {  // RFC 4648, section 10
  const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(EncodeBase64(plain), encoded);
    EXPECT_EQ(DecodeBase64(encoded).value_or("error"), plain);
  }
}

TEST(Base64, RoundTripsAllBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)).value_or("error"), bytes);
}

TEST(Base64, SkipsLineBreaks) {
  EXPECT_EQ(DecodeBase64(" Zm9v\r\n\tYg==\n").value_or("error"), "foob");
}

TEST(Base64, RefusesTruncatedInputAndOtherCharacters) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zm9vY===", "Zg==Zg==", "Zm9v=", "====", "Zm-_", "§"}) {
    EXPECT_EQ(DecodeBase64(text).status().code(), Code::kInvalid) << text;
  }
}

}  // namespace
}  // namespace nos
