// Makes networks of different widths train alike (--parametrisation mup): the maximal update
// parametrisation, µP, of Yang, Hu et al., "Tensor Programs V: Tuning Large Neural Networks via
// Zero-Shot Hyperparameter Transfer" (NeurIPS 2021, arXiv 2203.03466), table 3.
//
// w is the width of the network divided by the base width. A dimension of a parameter is wide if
// the network's width changes it. `in` and `out` below are the factors by which a parameter has
// more input and output channels than the same parameter of the network with the base width. A
// factor is 1 if its dimension is not wide, and the `in` of biases and norms is 1.
//
//   parameter                       in, out   deviation    rate, sgd   rate, adamw
//   first convolutions              1, w      base         w           1
//   biases and norms                1, w      base         w           1
//   hidden convolutions and layers  w, w      base / √w    1           1 / w
//   the last layer (head)           w, 1      base / w     1 / w       1 / w
//   others (no wide dimension)      1, 1      base         1           1
//
// `base` is the deviation or bound of the parameter's initial values in the network with the base
// width. Constant initial values do not change. So a network with the base width trains exactly as
// it does in the standard parametrisation, to the bit.
//
// Table 3 needs no multiplier of the network's output. So the network computes the same function of
// its parameters as in the standard parametrisation, and its checkpoints and exported files need no
// further field. Other forms of µP multiply the output by 1/w, use learning rates of the head that
// are larger by w² (sgd) or w (adamw), and initial values of the head that are larger by w. By the
// paper's lemma J.1 both forms train exactly alike.
//
// As in the authors' optimizers, the product of learning rate and weight decay does not depend on
// the width. AdamW's epsilon is not scaled, so it must be small compared with the gradients.
#pragma once

#include <cstdint>

#include "app/choices.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

class Network;

enum class Parametrisation : std::uint8_t { standard, mup };
template <>
inline constexpr auto kChoices<Parametrisation> = std::to_array<Choice<Parametrisation>>(
    {{"standard", Parametrisation::standard}, {"mup", Parametrisation::mup}});

// Sets ParameterSpec::initializer and width_rate of all parameters by the table above. Throws
// UsageError unless the network is a built-in one that has a width, such as wrn28_10.
void parametrise_by_width(Network& network, std::int64_t base_width, kernels::OptimizerKind optimizer);

}  // namespace convoy::app
