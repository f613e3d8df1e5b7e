// Ownership of OpenSSL's objects.
//
//   using Bio = std::unique_ptr<BIO, FreeWith<&BIO_free_all>>;
#pragma once

namespace nos::net {

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};

}  // namespace nos::net
