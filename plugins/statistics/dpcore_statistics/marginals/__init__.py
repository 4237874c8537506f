"""Tables of counts by the residual basis: least noise, margins that agree, exact intervals."""
