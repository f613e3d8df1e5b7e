// Kubernetes' authorization library. Selectors have no authorizer, so that no call of these
// succeeds; they are declared because upstream accepts them on values of unknown type.
#include "cel/library/function.h"

namespace nos::cel {
namespace {

Value Never(Arena&, std::span<const Value>) { return NoSuchOverload(); }

}  // namespace

void DeclareAuthorization(Declarer& declare) {
  using namespace types;
  const Type* const s = &kString;
  const Type* const check = &kResourceCheck;
  declare.Member("path", "authorizer_path", {&kAuthorizer, s}, &kPathCheck, Never);
  declare.Member("group", "authorizer_group", {&kAuthorizer, s}, &kGroupCheck, Never);
  declare.Member("serviceAccount", "authorizer_serviceaccount", {&kAuthorizer, s, s}, &kAuthorizer,
                 Never);
  declare.Member("resource", "groupcheck_resource", {&kGroupCheck, s}, check, Never);
  declare.Member("subresource", "resourcecheck_subresource", {check, s}, check, Never);
  declare.Member("namespace", "resourcecheck_namespace", {check, s}, check, Never);
  declare.Member("name", "resourcecheck_name", {check, s}, check, Never);
  declare.Member("check", "pathcheck_check", {&kPathCheck, s}, &kDecision, Never);
  declare.Member("check", "resourcecheck_check", {check, s}, &kDecision, Never);
  declare.Member("errored", "decision_errored", {&kDecision}, &kBool, Never);
  declare.Member("error", "decision_error", {&kDecision}, s, Never);
  declare.Member("allowed", "decision_allowed", {&kDecision}, &kBool, Never);
  declare.Member("reason", "decision_reason", {&kDecision}, s, Never);
  declare.Member("fieldSelector", "authorizer_fieldselector", {check, s}, check, Never);
  declare.Member("labelSelector", "authorizer_labelselector", {check, s}, check, Never);
}

}  // namespace nos::cel
