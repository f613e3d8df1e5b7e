// Compiles and evaluates selectors with the code of kube-scheduler: one JSON object a line on stdin,
// one answer a line on stdout.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"

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
	// How often each is evaluated: Go iterates over maps in random order.
	Repeat int `json:"repeat"`
}

type answer struct {
	Compiles bool   `json:"compiles"`
	Cause    string `json:"cause,omitempty"`
	Estimate uint64 `json:"estimate"`
	Matches  bool   `json:"matches"`
	Error    string `json:"error,omitempty"`
	Cost     uint64 `json:"cost"`
	// Evaluations differed.
	Unstable bool `json:"unstable,omitempty"`
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

func ask(expression string, input cel.Device, repeat int) (result answer) {
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
	for i := 0; i < max(repeat, 1); i++ {
		each := answer{Compiles: true, Estimate: compiled.MaxCost}
		matches, details, err := compiled.DeviceMatches(context.Background(), input)
		each.Matches = matches
		if err != nil {
			each.Error = err.Error()
		}
		if details != nil {
			if cost := details.ActualCost(); cost != nil {
				each.Cost = *cost
			}
		}
		if i > 0 && each != result {
			each.Unstable = true
			return each
		}
		result = each
	}
	return result
}

// printExpressions prints the texts that Go source files of tests give to fields named expr or
// expression, one JSON string a line.
func printExpressions(files []string) {
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			field, ok := node.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			name, _ := field.Key.(*ast.Ident)
			literal, _ := field.Value.(*ast.BasicLit)
			if name == nil || literal == nil || literal.Kind != token.STRING {
				return true
			}
			switch name.Name {
			case "expr", "expression", "in", "I":
				if text, err := strconv.Unquote(literal.Value); err == nil {
					line, _ := json.Marshal(text)
					fmt.Println(string(line))
				}
			}
			return true
		})
	}
}

func main() {
	if len(os.Args) > 1 {
		printExpressions(os.Args[1:])
		return
	}
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
			answers[i] = ask(expression, devices[asked.Device], asked.Repeat)
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
