// The figures of the synthetic data set as signed distance functions (negative inside). A figure
// roughly fills the unit circle. The formulas follow Quilez, "2D distance functions".
#pragma once

namespace convoy::data {

inline constexpr int kFigures = 12;
const char* name_of_figure(int figure);  // "disc", "ring", …
float distance_to_figure(int figure, float x, float y);

}  // namespace convoy::data
