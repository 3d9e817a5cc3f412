// The table of all layer types. A new type needs its include and its row here, and nothing else:
// the step graph takes the operations from the types' Nodes.
#pragma once

#include <variant>

#include "app/model/ops/add.h"
#include "app/model/ops/batch_norm.h"
#include "app/model/ops/concat.h"
#include "app/model/ops/conv2d.h"
#include "app/model/ops/dropout.h"
#include "app/model/ops/input.h"
#include "app/model/ops/linear.h"
#include "app/model/ops/local_response_norm.h"
#include "app/model/ops/pool.h"
#include "app/model/ops/relu.h"

namespace convoy::app {

using LayerOp = std::variant<  //
    Input,                     //
    Conv2d,                    //
    BatchNorm,                 //
    Relu,                      //
    Add,                       //
    Concat,                    //
    Pool,                      //
    LocalResponseNorm,         //
    Dropout,                   //
    Linear>;

}  // namespace convoy::app
