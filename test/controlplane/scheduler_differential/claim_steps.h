// Waits until kube-controller-manager and kube-scheduler have created, reserved or released the
// claims of a pod.
#pragma once

#include <string>

#include "scheduler_differential/plane.h"

namespace nos::differential {

// Waits until each claim from a template exists and is in the pod's status. `key`: "ns/name".
Status AwaitClaims(Plane& plane, const std::string& key);
// Waits until the watch shows that the claims of a bound pod are reserved for it.
Status AwaitReservations(Plane& plane, const std::string& key);
// Deletes a pod with the claims that were made for it, and waits until no claim is reserved for it.
Status ReleaseClaims(Plane& plane, const Json& pod);

}  // namespace nos::differential
