// Validates Kubernetes names.
//
// Source: k8s.io/apimachinery pkg/util/validation.
#pragma once

#include <string_view>

namespace nos {

// RFC 1123 label (63 characters) and subdomain (253).
bool IsDnsLabel(std::string_view text);
bool IsDnsSubdomain(std::string_view text);
// The key of a label, or a resource name: "example.com/dongle", "cpu".
bool IsQualifiedName(std::string_view text);
// A label's value: up to 63 characters, may be empty.
bool IsLabelValue(std::string_view text);

}  // namespace nos
