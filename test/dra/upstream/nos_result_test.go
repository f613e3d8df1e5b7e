// Checks a result by the rules of the API, without an allocator.
package experimental

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// checkedRequest is a request of a claim, or one of its alternatives.
type checkedRequest struct {
	class       string
	selectors   []resourceapi.DeviceSelector
	mode        resourceapi.DeviceAllocationMode
	count       int
	tolerations []resourceapi.DeviceToleration
}

func findRequest(claim *resourceapi.ResourceClaim, name string) *checkedRequest {
	for _, request := range claim.Spec.Devices.Requests {
		if request.Exactly != nil && request.Name == name {
			e := request.Exactly
			return &checkedRequest{e.DeviceClassName, e.Selectors, e.AllocationMode, int(e.Count), e.Tolerations}
		}
		for _, a := range request.FirstAvailable {
			if request.Name+"/"+a.Name == name {
				return &checkedRequest{a.DeviceClassName, a.Selectors, a.AllocationMode, int(a.Count), a.Tolerations}
			}
		}
	}
	return nil
}

type resultChecker struct {
	problem  *nosProblem
	state    AllocatedState
	left     counters
	devices  map[DeviceID]*resourceapi.Device
	slices   map[DeviceID]*resourceapi.ResourceSlice
	taken    map[DeviceID]int // claims that have the device alone
	shared   map[DeviceID]bool
	consumed map[DeviceID]map[resourceapi.QualifiedName]resource.Quantity
}

// checkResult returns what is wrong, "" if nothing is.
func checkResult(problem *nosProblem, state AllocatedState, results []resourceapi.AllocationResult) string {
	j := &resultChecker{problem, state, countersOf(problem.Slices), map[DeviceID]*resourceapi.Device{}, map[DeviceID]*resourceapi.ResourceSlice{},
		map[DeviceID]int{}, map[DeviceID]bool{}, map[DeviceID]map[resourceapi.QualifiedName]resource.Quantity{}}
	ambiguous := false // a name on two nodes: the checker would take the wrong device
	forEachDevice(problem.Slices, func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) {
		id := MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)
		ambiguous = ambiguous || j.devices[id] != nil
		if state.AllocatedDevices.Has(id) || state.AllocatedSharedDeviceIDs.Has(internalShare(id)) {
			j.left.take(slice, device)
		}
		j.devices[id], j.slices[id] = device, slice
	})
	if ambiguous {
		return ""
	}
	if len(results) != len(problem.Claims) {
		return "not one result for each claim"
	}
	for i, claim := range problem.Claims {
		if fault := j.checkClaim(claim, results[i].Devices.Results); fault != "" {
			return fmt.Sprintf("claim %s: %s", claim.Name, fault)
		}
	}
	return ""
}

func (j *resultChecker) checkClaim(claim *resourceapi.ResourceClaim, results []resourceapi.DeviceRequestAllocationResult) string {
	counts := map[string]int{}
	for _, result := range results {
		if fault := j.checkDevice(claim, result); fault != "" {
			return fmt.Sprintf("device %s for %s: %s", result.Device, result.Request, fault)
		}
		counts[result.Request]++
	}
	for _, request := range claim.Spec.Devices.Requests {
		satisfied := 0
		names := []string{request.Name}
		for _, alternative := range request.FirstAvailable {
			names = append(names, request.Name+"/"+alternative.Name)
		}
		for _, name := range names {
			found := findRequest(claim, name)
			if found != nil && counts[name] > 0 && (found.mode == resourceapi.DeviceAllocationModeAll || counts[name] == found.count) {
				satisfied++
			}
		}
		if satisfied != 1 {
			return fmt.Sprintf("request %s is not satisfied", request.Name)
		}
	}
	return j.checkConstraints(claim, results)
}

func (j *resultChecker) checkDevice(claim *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) string {
	id := MakeDeviceID(result.Driver, result.Pool, result.Device)
	device, slice := j.devices[id], j.slices[id]
	request := findRequest(claim, result.Request)
	if device == nil || request == nil {
		return "does not exist"
	}
	for _, taint := range device.Taints {
		tolerated := slices.ContainsFunc(request.tolerations, func(toleration resourceapi.DeviceToleration) bool {
			return resourceclaim.ToleratesTaint(toleration, taint)
		})
		if j.problem.Features.DeviceTaints && taint.Effect != resourceapi.DeviceTaintEffectNone && !tolerated {
			return "is tainted"
		}
	}
	if fault := j.checkSelectors(slice, device, request); fault != "" {
		return fault
	}
	if result.AdminAccess != nil {
		return ""
	}
	if j.state.AllocatedDevices.Has(id) || j.taken[id] > 0 {
		return "is in use"
	}
	before := j.shared[id] || j.state.AllocatedSharedDeviceIDs.Has(internalShare(id))
	if !before && !j.left.take(slice, device) {
		return "overdraws counters"
	}
	if result.ShareID == nil {
		if before {
			return "is shared"
		}
		j.taken[id]++
		return ""
	}
	j.shared[id] = true
	return j.checkCapacity(id, device, result)
}

func (j *resultChecker) checkCapacity(id DeviceID, device *resourceapi.Device, result resourceapi.DeviceRequestAllocationResult) string {
	if j.consumed[id] == nil {
		j.consumed[id] = map[resourceapi.QualifiedName]resource.Quantity{}
		for name, used := range j.state.AggregatedCapacity[id] {
			j.consumed[id][name] = used.DeepCopy()
		}
	}
	for name, capacity := range device.Capacity {
		amount, found := result.ConsumedCapacity[name]
		if !found {
			return "consumes no capacity"
		}
		total := j.consumed[id][name]
		total.Add(amount)
		if total.Cmp(capacity.Value) > 0 {
			return "overdraws capacity"
		}
		j.consumed[id][name] = total
	}
	return ""
}

// checkedExpressions is Kubernetes' evaluator; nos has answered with its own.
var checkedExpressions = cel.NewCache(100, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})

func (j *resultChecker) checkSelectors(slice *resourceapi.ResourceSlice, device *resourceapi.Device, request *checkedRequest) string {
	selectors := request.selectors
	for _, class := range j.problem.Classes {
		if class.Name == request.class {
			selectors = append(slices.Clone(class.Spec.Selectors), selectors...)
		}
	}
	for _, selector := range selectors {
		compiled := checkedExpressions.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return "is selected by an expression that does not compile"
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver:                   slice.Spec.Driver,
			AllowMultipleAllocations: device.AllowMultipleAllocations,
			Attributes:               device.Attributes,
			Capacity:                 device.Capacity,
		})
		if err != nil || !matches {
			return "is not selected"
		}
	}
	return ""
}

// checkConstraints looks at attributes with one value that are not derived; the others are left to the
// comparison with Kubernetes.
func (j *resultChecker) checkConstraints(claim *resourceapi.ResourceClaim, results []resourceapi.DeviceRequestAllocationResult) string {
	for _, constraint := range claim.Spec.Devices.Constraints {
		name := constraint.MatchAttribute
		if name == nil {
			name = constraint.DistinctAttribute
		}
		seen := map[string]int{}
		total := 0
		for _, result := range results {
			parent := result.Request
			for i := range parent {
				if parent[i] == '/' {
					parent = parent[:i]
					break
				}
			}
			if len(constraint.Requests) > 0 && !slices.Contains(constraint.Requests, parent) && !slices.Contains(constraint.Requests, result.Request) {
				continue
			}
			id := MakeDeviceID(result.Driver, result.Pool, result.Device)
			attribute := lookupForChecker(j.devices[id], result.Driver, string(*name))
			if attribute == nil {
				if *name == "derived.example.com/half" {
					continue
				}
				return "a constraint reads a missing attribute"
			}
			if len(attribute.StringValues) > 0 {
				continue
			}
			total++
			switch {
			case attribute.StringValue != nil:
				seen["s"+*attribute.StringValue]++
			case attribute.IntValue != nil:
				seen[fmt.Sprint(*attribute.IntValue)]++
			}
		}
		if constraint.MatchAttribute != nil && len(seen) > 1 {
			return "a matchAttribute constraint is violated"
		}
		if constraint.DistinctAttribute != nil && len(seen) != total {
			return "a distinctAttribute constraint is violated"
		}
	}
	return ""
}

func lookupForChecker(device *resourceapi.Device, driver, name string) *resourceapi.DeviceAttribute {
	if attribute, found := device.Attributes[resourceapi.QualifiedName(name)]; found {
		return &attribute
	}
	if len(name) > len(driver) && name[:len(driver)] == driver && name[len(driver)] == '/' {
		if attribute, found := device.Attributes[resourceapi.QualifiedName(name[len(driver)+1:])]; found {
			return &attribute
		}
	}
	return nil
}
