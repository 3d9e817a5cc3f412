// Lists all layer types. A new type needs only its include and its row here. The step graph takes
// the operations from the types' Nodes.
#pragma once

#include <variant>

#include "app/model/ops/activation.h"
#include "app/model/ops/add.h"
#include "app/model/ops/batch_norm.h"
#include "app/model/ops/channels.h"
#include "app/model/ops/concat.h"
#include "app/model/ops/conv2d.h"
#include "app/model/ops/dropout.h"
#include "app/model/ops/flatten.h"
#include "app/model/ops/group_norm.h"
#include "app/model/ops/input.h"
#include "app/model/ops/layer_norm.h"
#include "app/model/ops/linear.h"
#include "app/model/ops/local_response_norm.h"
#include "app/model/ops/multiply.h"
#include "app/model/ops/pad.h"
#include "app/model/ops/pool.h"
#include "app/model/ops/prelu.h"
#include "app/model/ops/relu.h"
#include "app/model/ops/scale.h"
#include "app/model/ops/softmax.h"

namespace convoy::app {

using LayerOp = std::variant<  //
    Input,                     //
    Conv2d,                    //
    BatchNorm,                 //
    LayerNorm,                 //
    GroupNorm,                 //
    Relu,                      //
    Activation,                //
    Prelu,                     //
    Add,                       //
    Multiply,                  //
    Scale,                     //
    Bias,                      //
    Concat,                    //
    Slice,                     //
    ChannelShuffle,            //
    Pad,                       //
    Pool,                      //
    Flatten,                   //
    Softmax,                   //
    LocalResponseNorm,         //
    Dropout,                   //
    Linear>;

}  // namespace convoy::app
