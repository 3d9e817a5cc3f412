// Searches a file's graph backwards from a value, for the recognition of operations that a file
// writes as groups of nodes (patterns.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

bool near(double a, double b);  // whether `a` is `b` up to a relative difference of 1e-4
// Returns whether the node is ONNX's operation `op` with two inputs.
bool is_binary(const FileNode& node, std::string_view op);
// Returns a node without name, outputs and index.
FileNode make_node(std::string op, std::vector<std::string> inputs,
                   std::map<std::string, Attribute> attributes = {});

class PatternGraph {
 public:
  // The graph must live longer than this object. Its nodes may be replaced by others with the same
  // outputs.
  explicit PatternGraph(const FileGraph& graph);

  // Returns the node that computes a value, or null if no node does.
  const FileNode* made_by(const std::string& value) const;
  // Returns the node that computes a value, or null if the node is not of the type `op`. Skips up
  // to four Cast nodes.
  const FileNode* maker(const std::string& value, std::string_view op) const;
  // Does the same as maker(), but also returns null unless the node has two inputs.
  const FileNode* binary(const std::string& value, std::string_view op) const;

  // Returns a constant of the file, or nothing if the value is not a stored constant.
  std::optional<Constant> constant(const std::string& value) const;
  // Returns the only element of a stored constant, or nothing if the value is not a stored constant
  // with one element.
  std::optional<double> number(const std::string& value) const;

  // The two inputs of a node: a value and a constant number.
  struct WithNumber {
    std::string value;
    double number;
  };
  std::optional<WithNumber> with_number(const FileNode& node) const;
  // Returns 2 or 3 if the value is the square or the cube of another one, and 0 otherwise.
  int small_power(const std::string& value) const;
  // Returns whether the value is a sum of `number` and another value. Sets `other` to its name.
  bool is_sum(const std::string& value, double number, std::string& other) const;

  // The factors of a product. All constant numbers are multiplied into `number`. A factor named
  // `whole` is not divided, even if it is a product itself.
  struct Product {
    std::string whole;
    double number = 1;
    std::vector<std::string> values = {};
  };
  // Appends the factors of a value. Sets the number to NaN if there are too many.
  void collect(const std::string& value, Product& product, int depth = 0) const;
  // Returns the factors of a node, or nothing if the node is neither a product nor a division by a
  // number.
  std::optional<Product> product_of(const FileNode& node, const std::string& whole = {}) const;

 private:
  const FileGraph& graph_;
  std::map<std::string, std::size_t> maker_;
};

// The node that replaces a node, or nothing if the node is not the last one of a known group.
using Match = std::optional<FileNode>;

// Recognises activations, and a Clip after a ReLU (activations.cpp).
Match match_activation(const PatternGraph& graph, const FileNode& node);
// Recognises layer norm, group norm and local response norm.
Match match_norm(const PatternGraph& graph, const FileNode& node);

}  // namespace convoy::app::onnx_import
