// Controls in the dashboard's style; react-aria provides keyboard and screen-reader behaviour.
import type { ReactNode } from "react";
import {
  Button,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  Select,
  SelectValue,
  ToggleButton,
  ToggleButtonGroup,
} from "react-aria-components";
import { Icon } from "./icons";

export interface Option {
  id: string;
  label: string;
  note?: string;
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly Option[];
  onChange: (id: string) => void;
  /** Shown before the value; alone if nothing is chosen. */
  prefix?: string;
}

/** A choice of one among many. */
export function Choice({ label, value, options, onChange, prefix }: ChoiceProps): ReactNode {
  return (
    <Select
      className="choice"
      selectedKey={value}
      onSelectionChange={(key) => {
        if (key !== null) onChange(String(key));
      }}
    >
      <Label className={prefix ? "choice-label" : "hidden"}>
        <span className="hidden">{label}</span>
        {prefix}
      </Label>
      <Button className="choice-button">
        <SelectValue>{options.find((each) => each.id === value)?.label ?? (prefix ? "" : "choose")}</SelectValue>
        <Icon name="down" />
      </Button>
      <Popover className="popover" placement="bottom start">
        <ListBox className="list" items={options}>
          {(option) => (
            <ListBoxItem id={option.id} textValue={option.label} className="list-item">
              <span className="ellipsis">{option.label}</span>
              {option.note && <span className="muted">{option.note}</span>}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </Select>
  );
}

interface SegmentsProps {
  label: string;
  value: string;
  options: readonly Option[];
  onChange: (id: string) => void;
}

/** A choice of one among a few, all visible. */
export function Segments({ label, value, options, onChange }: SegmentsProps): ReactNode {
  return (
    <ToggleButtonGroup
      className="segments"
      aria-label={label}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[value]}
      onSelectionChange={(keys) => {
        const [key] = keys;
        if (key !== undefined) onChange(String(key));
      }}
    >
      {options.map((option) => (
        <ToggleButton key={option.id} id={option.id} className="segment">
          {option.label}
          {option.note && <span className="segment-note">{option.note}</span>}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}

interface SearchProps {
  label: string;
  value: string;
  placeholder: string;
  onChange: (value: string) => void;
}

export function Search({ label, value, placeholder, onChange }: SearchProps): ReactNode {
  return (
    <div className="search" role="search">
      <Icon name="search" />
      <input
        type="search" aria-label={label} placeholder={placeholder} maxLength={200} spellCheck={false} autoComplete="off"
        value={value} onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onChange("");
        }}
      />
      {value !== "" && (
        <Button className="icon-button search-clear" aria-label="Clear" onPress={() => onChange("")}>
          <Icon name="close" />
        </Button>
      )}
    </div>
  );
}

interface IconButtonProps {
  label: string;
  icon: Parameters<typeof Icon>[0]["name"];
  onPress: () => void;
  isDisabled?: boolean;
}

export function IconButton({ label, icon, onPress, isDisabled }: IconButtonProps): ReactNode {
  return (
    <Button className="icon-button" aria-label={label} onPress={onPress} isDisabled={isDisabled}>
      <Icon name={icon} />
    </Button>
  );
}
