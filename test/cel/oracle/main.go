// Compiles and evaluates selectors with the code of kube-scheduler: one JSON object a line on stdin,
// one answer a line on stdout.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

type device struct {
	Driver     string                                 `json:"driver"`
	Multiple   *bool                                  `json:"multiple,omitempty"`
	Attributes map[string]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity   map[string]string                      `json:"capacity"`
}

type question struct {
	// Devices are sent once, in a question of their own, and then named by number.
	Devices     []device `json:"devices,omitempty"`
	Expressions []string `json:"expressions,omitempty"`
	Device      int      `json:"device"`
}

type answer struct {
	Compiles bool   `json:"compiles"`
	Cause    string `json:"cause,omitempty"`
	Estimate uint64 `json:"estimate"`
	Matches  bool   `json:"matches"`
	Error    string `json:"error,omitempty"`
	Cost     uint64 `json:"cost"`
}

func convert(in device) (cel.Device, error) {
	out := cel.Device{
		Driver:                   in.Driver,
		AllowMultipleAllocations: in.Multiple,
		Attributes:               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for name, value := range in.Attributes {
		out.Attributes[resourceapi.QualifiedName(name)] = value
	}
	for name, text := range in.Capacity {
		value, err := resource.ParseQuantity(text)
		if err != nil {
			return out, fmt.Errorf("capacity %s: %w", name, err)
		}
		out.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: value}
	}
	return out, nil
}

func ask(expression string, input cel.Device) (result answer) {
	// cel-go panics while it compiles some expressions; an API server answers such a request with an
	// error.
	defer func() {
		if cause := recover(); cause != nil {
			result = answer{Cause: fmt.Sprintf("panic: %v", cause)}
		}
	}()
	features := cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
	compiled := cel.GetCompiler(features).CompileCELExpression(expression, cel.Options{})
	if compiled.Error != nil {
		return answer{Cause: compiled.Error.Error()}
	}
	result = answer{Compiles: true, Estimate: compiled.MaxCost}
	matches, details, err := compiled.DeviceMatches(context.Background(), input)
	result.Matches = matches
	if err != nil {
		result.Error = err.Error()
	}
	if details != nil {
		if cost := details.ActualCost(); cost != nil {
			result.Cost = *cost
		}
	}
	return result
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	var devices []cel.Device
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintln(os.Stderr, "broken question:", err)
			os.Exit(1)
		}
		for _, each := range asked.Devices {
			converted, err := convert(each)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			devices = append(devices, converted)
		}
		answers := make([]answer, len(asked.Expressions))
		for i, expression := range asked.Expressions {
			answers[i] = ask(expression, devices[asked.Device])
		}
		text, err := json.Marshal(answers)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Write(append(text, '\n'))
		out.Flush()
	}
}
